package sourcetest

import (
	"fmt"
	"time"

	"github.com/semel-go/semel"
)

// returnCases returns the cases about redelivery.
func returnCases() []Case {
	return []Case{
		{"unsettled_comes_again", "An unsettled message is delivered again by the next source.", testUnsettledRedelivered},
		{"settled_stays_away", "A message that is settled together with all earlier messages is not delivered by the next source.", testSettledNotRedelivered},
		{"out_of_order_settlement", "A settlement settles only its own delivery, never an earlier or later one.", testSettleOutOfOrder},
		{"handed_back_comes_again", "A nacked message is delivered again by the same source.", testNack},
		{"handed_back_waits", "A message that is nacked with a delay is not redelivered earlier, and delays no other message.", testNackDelay},
		{"handed_back_survives", "A nacked message that was not yet redelivered is delivered by the next source.", testNackSurvivesRestart},
		{"dead_letters_are_copies_and_not_acknowledged", "A dead letter is a copy with the same key, headers and body, and its delivery stays unsettled until its Ack; a source without dead letters returns semel.ErrUnsupported.", testDeadLetter},
		{"lost_lanes", "A settlement of a revoked lane or an old epoch returns no error and settles nothing.", testLostLane},
		{"deliveries_are_counted", "Before is how often a message was delivered before, or Unknown.", testDeliveryCounts},
	}
}

func testUnsettledRedelivered(s *session) error {
	s.publish(50)
	s.openSource()
	if err := s.collect(50); err != nil || !s.Can.Reopens {
		return err
	}
	if err := s.reopen(); err != nil {
		return err
	}
	return s.collect(50)
}

func testSettledNotRedelivered(s *session) error {
	s.publish(50)
	s.openSource()
	if err := s.collect(50); err != nil || !s.Can.Remembers {
		return err
	}
	if err := s.settle(semel.Ack, 0, s.deliveries...); err != nil {
		return err
	}
	if err := s.reopen(); err != nil {
		return err
	}
	return s.checkNoDelivery(s.Quiet, none)
}

func testSettleOutOfOrder(s *session) error {
	s.publish(40)
	s.openSource()
	if err := s.collect(40); err != nil || !s.Can.Reopens {
		return err
	}
	left := []int{11, 23}
	all := s.deliveriesExcept(left...)
	for i := len(all) - 1; i >= 0; i -= 2 { // backwards, every second message; all messages are acked later
		if err := s.settle(semel.Ack, 0, all[i]); err != nil {
			return err
		}
	}
	if err := s.settle(semel.Ack, 0, all...); err != nil {
		return err
	}
	if err := s.reopen(); err != nil {
		return err
	}
	for _, n := range left {
		if s.deliveryCounts[string(s.published[n].Body)] > 0 {
			continue
		}
		if _, err := s.awaitRedelivery(n); err != nil {
			return fmt.Errorf("%w from the next source, although it was not settled", err)
		}
	}
	return nil
}

func testNack(s *session) error {
	s.publish(10)
	s.openSource()
	if err := s.collect(10); err != nil {
		return err
	}
	if !s.Can.HandsBack {
		left, err := s.trySettle(semel.Nack, 0, s.firstDelivery(4))
		if err == nil && len(left) == 0 {
			return fmt.Errorf("nack was accepted, but the harness does not declare Can.HandsBack")
		}
		return nil
	}
	for range 3 { // nack the same message three more times
		if err := s.settle(semel.Nack, 0, s.deliveries[len(s.deliveries)-1]); err != nil {
			return err
		}
		if _, err := s.awaitRedelivery(number(s.deliveries[len(s.deliveries)-1].Message)); err != nil {
			return err
		}
	}
	return nil
}

func testNackDelay(s *session) error {
	s.publish(10)
	s.openSource()
	if err := s.collect(10); err != nil || !s.Can.HandsBack || !s.Can.Delays {
		return err
	}
	wait := 2 * s.Quiet
	if !s.Virtual {
		wait = 10 * s.Quiet // a busy machine may delay the other message
	}
	began := time.Now()
	if err := s.settle(semel.Nack, wait, s.firstDelivery(3)); err != nil {
		return err
	}
	if err := s.settle(semel.Nack, 0, s.firstDelivery(7)); err != nil {
		return err
	}
	if _, err := s.awaitRedelivery(7); err != nil {
		return err
	}
	if took := time.Since(began); took >= wait {
		return fmt.Errorf("another message was delayed by %v", took)
	}
	if _, err := s.awaitRedelivery(3); err != nil {
		return err
	}
	if took := time.Since(began); took < wait {
		return fmt.Errorf("redelivered after %v, not %v", took, wait)
	}
	return nil
}

func testNackSurvivesRestart(s *session) error {
	s.publish(20)
	s.openSource()
	if err := s.collect(20); err != nil || !s.Can.HandsBack || !s.Can.Reopens {
		return err
	}
	if err := s.settle(semel.Nack, time.Hour, s.firstDelivery(0), s.firstDelivery(9)); err != nil {
		return err
	}
	if err := s.settle(semel.Ack, 0, s.deliveriesExcept(0, 9)...); err != nil {
		return err
	}
	if err := s.reopen(); err != nil {
		return err
	}
	if s.Can.Delays {
		s.Patience += time.Hour // a broker may still apply the delay of the nack
	}
	for _, n := range []int{0, 9} {
		if s.deliveryCounts[string(s.published[n].Body)] > 0 {
			continue
		}
		if _, err := s.awaitRedelivery(n); err != nil {
			return err
		}
	}
	return nil
}

func testLostLane(s *session) error {
	s.publish(8)
	s.openSource()
	if err := s.collect(8); err != nil {
		return err
	}
	stale := s.deliveriesExcept()
	for i := range stale {
		stale[i].Lane.Epoch += 1000
	}
	if err := s.settle(semel.Ack, 0, stale...); err != nil {
		return err
	}
	if !s.Can.Reopens {
		return nil
	}
	if err := s.reopen(); err != nil {
		return err
	}
	return s.collect(8)
}

func testDeliveryCounts(s *session) error {
	s.publish(4)
	s.openSource()
	if err := s.collect(4); err != nil || !s.Can.HandsBack {
		return err
	}
	for range 3 { // the session compares Before with the number of deliveries that the session has seen
		if err := s.settle(semel.Nack, 0, s.deliveries[len(s.deliveries)-1]); err != nil {
			return err
		}
		if _, err := s.awaitRedelivery(number(s.deliveries[len(s.deliveries)-1].Message)); err != nil {
			return err
		}
	}
	return nil
}
