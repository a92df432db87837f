package sourcetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// Cases returns all cases, for tests that run or list single cases. If the harness does not declare the ability that a
// case tests, the case still runs, with fewer checks.
func Cases() []Case {
	return slices.Concat(deliveryCases(), returnCases(), flowCases(), ageCases())
}

func deliveryCases() []Case {
	return []Case{
		{"everything_is_delivered", "Everything published is delivered at least once, as it was published.", testEverythingDelivered},
		{"order_in_a_lane", "Messages of a lane are first delivered in the order in which they were published.", testOrder},
		{"lanes_are_given_first", "A lane is assigned before its first delivery, and every delivery names an assigned lane.", testLanesGivenFirst},
		{"bounds", "A Fetch returns no more than its bounds allow, but at least one delivery, however large.", testBounds},
		{"what_comes_later", "A message that is published while Fetch waits is delivered.", testLateMessage},
		{"context_end_loses_nothing", "When its context ends, Fetch returns the messages that it has taken without an error, or, if there are none, perhaps the context's error; nothing is lost.", testContextEnd},
		{"waiting_ends_with_the_context", "Fetch without messages waits until its context ends, and returns no error if its broker is reachable.", testWaiting},
		{"settle_beside_fetch", "Settle can run concurrently with Fetch and does not wait for it.", testSettleBesideFetch},
		{"end", "Fetch returns ErrEnd only after everything is settled; nacked messages are redelivered first.", testEnd},
		{"after_close", "After Close, Fetch returns at once and nothing is delivered.", testAfterClose},
	}
}

func testEverythingDelivered(s *session) error {
	s.publish(700)
	s.openSource()
	return s.collect(700)
}

func testOrder(s *session) error {
	s.publish(500)
	s.openSource()
	if s.Can.Ordered && s.source.Info().Unordered {
		return errors.New("the harness declares Can.Ordered, but source.Info.Unordered is true")
	}
	if err := s.collect(500); err != nil || !s.Can.Ordered {
		return err
	}
	last := make([]int, s.Can.Lanes)
	seen := map[int]bool{}
	for _, d := range s.deliveries {
		n := number(d.Message)
		lane := n % s.Can.Lanes
		if !seen[n] && n < last[lane] {
			return fmt.Errorf("message %d came after message %d of its lane", n, last[lane])
		}
		seen[n], last[lane] = true, max(n, last[lane])
	}
	return nil
}

func testLanesGivenFirst(s *session) error {
	s.publish(10)
	s.openSource()
	if err := s.collect(10); err != nil {
		return err
	}
	if err := s.reopen(); err != nil {
		return err
	}
	if s.Can.Reopens {
		return s.collect(10) // session checks the law for each delivery
	}
	return nil
}

func testBounds(s *session) error {
	s.publish(20)
	s.publishBody(0, strings.Repeat("x", 200_000))
	s.publish(5)
	s.openSource()
	patience := time.Now().Add(s.Patience)
	for i := 0; len(s.deliveryCounts) < 26 && !s.ended && time.Now().Before(patience); i++ {
		most := source.Bound{Messages: 1 + i%3, Bytes: 100}
		if _, err := s.fetch(time.Until(patience), most); err != nil {
			return err
		}
	}
	return s.collect(26)
}

func testLateMessage(s *session) error {
	s.publish(3)
	s.openSource()
	if err := s.collect(3); err != nil || !s.Can.Live {
		return err
	}
	s.publish(3)
	return s.collect(6)
}

func testContextEnd(s *session) error {
	s.publish(100)
	s.openSource()
	for _, d := range []time.Duration{0, time.Nanosecond, time.Microsecond, time.Millisecond} {
		if _, err := s.fetch(d, source.Bound{Messages: 7, Bytes: 1 << 20}); err != nil {
			return err
		}
	}
	return s.collect(100)
}

func testWaiting(s *session) error {
	s.publish(1)
	s.openSource()
	if err := s.collect(1); err != nil {
		return err
	}
	began := time.Now()
	if err := s.checkNoDelivery(s.Quiet, none); err != nil {
		return err
	}
	if took := time.Since(began); took > s.Quiet+s.Patience {
		return fmt.Errorf("Fetch returned %v after its context ended", took-s.Quiet)
	}
	if s.ended {
		return errors.New("Fetch returned ErrEnd while a message was unsettled")
	}
	if s.unanswered {
		return errors.New("Fetch returned its context's error, which means that the broker was unreachable")
	}
	return nil
}

func testEnd(s *session) error {
	s.publish(5)
	if s.Can.Ends {
		s.end()
	}
	s.openSource()
	if err := s.collect(5); err != nil || !s.Can.Ends {
		return err
	}
	if s.Can.HandsBack {
		if err := s.settle(semel.Nack, 0, s.firstDelivery(2)); err != nil {
			return err
		}
		if _, err := s.awaitRedelivery(2); err != nil {
			return err
		}
	}
	if s.ended {
		return errors.New("Fetch returned ErrEnd while messages were unsettled")
	}
	if err := s.settle(semel.Ack, 0, s.deliveries...); err != nil {
		return err
	}
	if err := s.checkNoDelivery(s.Patience, none); err != nil {
		return err
	}
	if !s.ended {
		return errors.New("Fetch did not return ErrEnd although everything was settled")
	}
	return nil
}

func testAfterClose(s *session) error {
	s.publish(5)
	s.openSource()
	if err := s.collect(1); err != nil {
		return err
	}
	source := s.source
	if err := s.close(); err != nil {
		return err
	}
	s.source = source
	got, _ := s.fetch(s.Patience, largeBound)
	s.source = nil
	if len(got) > 0 {
		return fmt.Errorf("%d messages were delivered after Close", len(got))
	}
	return nil
}
