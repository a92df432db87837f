package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/source"
)

func flowCases() []Case {
	return []Case{
		{"pause_and_resume", "Until it is resumed, a paused lane delivers only messages that were already being fetched; other lanes continue.", testPauseAndResume},
		{"idle_when_everything_is_delivered", "A source that implements Idle is idle exactly when everything is delivered and no nacked message waits.", testIdleAtEnd},
		{"flow_loses_nothing", "Pausing and resuming loses nothing, also if the source does not support it.", testFlowLosesNothing},
	}
}

func testPauseAndResume(s *session) error {
	n := 20 * s.Can.Lanes
	s.publish(n)
	s.openSource()
	first, err := s.fetchOne()
	if err != nil || !s.Can.Pauses {
		return err
	}
	s.source.Flow(first.Lane, false)
	lane := number(first.Message) % s.Can.Lanes
	// A call of Fetch was already getting the message when the case paused the lane.
	if _, err := s.fetch(s.Quiet, source.Bound{Messages: 1, Bytes: 1}); err != nil {
		return err
	}
	if err := s.checkNoDelivery(s.Quiet, func(n int) bool { return n%s.Can.Lanes != lane }); err != nil {
		return fmt.Errorf("while lane %q was paused: %w", first.Lane.ID, err)
	}
	for other := range n {
		if other%s.Can.Lanes != lane && s.deliveryCounts[string(s.published[other].Body)] == 0 {
			return fmt.Errorf("message %d was delayed by a paused lane that is not its own", other)
		}
	}
	s.source.Flow(first.Lane, true)
	return s.collect(n)
}

// fetchOne calls Fetch until Fetch returns a delivery, and returns that delivery.
func (s *session) fetchOne() (source.Delivery, error) {
	for range 1000 {
		got, err := s.fetch(s.Patience, source.Bound{Messages: 1, Bytes: 1})
		if err != nil || len(got) > 0 {
			return append(got, source.Delivery{})[0], err
		}
	}
	return source.Delivery{}, fmt.Errorf("nothing was delivered")
}

func testIdleAtEnd(s *session) error {
	s.publish(20)
	s.openSource()
	first, err := s.fetchOne()
	if err != nil {
		return err
	}
	idler := s.source.Info().Idle
	switch {
	case !s.Can.Idles:
		return nil
	case idler == nil:
		return errors.New("the harness declares Can.Idles, but source.Info.Idle is nil")
	}
	if err := s.wantIdle(idler, false, "19 of 20 messages were not delivered"); err != nil {
		return err
	}
	if err := s.collect(20); err != nil {
		return err
	}
	if s.Can.HandsBack && s.Can.Delays {
		if err := s.settle(semel.Nack, s.Quiet, first); err != nil {
			return err
		}
		if err := s.wantIdle(idler, false, "a nacked message waited"); err != nil {
			return err
		}
	}
	return s.wantIdle(idler, true, "everything was delivered")
}

// wantIdle calls the source's Idle until Idle returns the wanted answer. If the wanted answer is true, wantIdle tries
// again, because a source may become idle some time after its last ack.
func (s *session) wantIdle(idler func(context.Context) (bool, []semel.Unfinished, error), want bool, when string) error {
	for deadline := time.Now().Add(s.Patience); ; {
		idle, left, err := idler(s.ctx)
		switch {
		case err == nil && idle == want && len(left) == 0:
			return nil
		case !want || time.Now().After(deadline):
			return fmt.Errorf("when %s: idle is %t, left %v, %w", when, idle, left, err)
		}
		if _, err := s.fetch(s.Quiet/10, largeBound); err != nil {
			return err
		}
	}
}

func testFlowLosesNothing(s *session) error {
	s.publish(60)
	s.openSource()
	for range 5 {
		d, err := s.fetchOne()
		if err != nil {
			return err
		}
		s.source.Flow(d.Lane, false)
		s.source.Flow(d.Lane, true)
	}
	return s.collect(60)
}

// testSettleBesideFetch tests that Settle and Fetch can run at the same time. First, a second goroutine acks messages
// while the first goroutine fetches. Then the first goroutine acks while the second goroutine waits in Fetch.
func testSettleBesideFetch(s *session) error {
	const n = 500
	s.publish(n)
	s.openSource()
	var group worker.Group
	var settled error
	todo := make(chan []source.Delivery, n)
	group.Go(func() {
		for batch := range todo {
			settled = errors.Join(settled, s.settle(semel.Ack, 0, batch...))
		}
	})
	err := s.collectInto(n-1, todo)
	close(todo)
	group.Wait()
	if err = errors.Join(err, settled); err != nil {
		return err
	}
	if err := s.settleWhileWaiting(&group, n); err != nil || !s.Can.Remembers {
		return err
	}
	if err := s.reopen(); err != nil {
		return err
	}
	return s.checkNoDelivery(s.Quiet, none)
}

// collectInto fetches all messages but the last in small batches, and sends each batch to the channel todo.
func (s *session) collectInto(n int, todo chan<- []source.Delivery) error {
	for range 10 * n {
		if len(s.deliveryCounts) >= n || s.ended {
			break
		}
		got, err := s.fetch(s.Patience, source.Bound{Messages: min(3, n-len(s.deliveryCounts)), Bytes: 1 << 20})
		if err != nil {
			return err
		}
		if len(got) > 0 {
			todo <- got
		}
	}
	if len(s.deliveryCounts) < n {
		return fmt.Errorf("%d of %d messages were delivered", len(s.deliveryCounts), n)
	}
	return nil
}

// settleWhileWaiting fetches the last message, and acks it while another call of Fetch waits for messages.
func (s *session) settleWhileWaiting(group *worker.Group, n int) error {
	from := len(s.deliveries)
	if err := s.collect(n); err != nil {
		return err
	}
	rest := slices.Clone(s.deliveries[from:])
	most := 2 * s.Quiet
	if !s.Virtual {
		most = s.Patience // the time limit is long, because a busy machine may be slow for reasons outside of the source
	}
	ctx, cancel := context.WithTimeout(s.ctx, 2*most)
	defer cancel()
	source := s.source
	group.Go(func() { _, _ = source.Fetch(ctx, largeBound) })
	timing.Wait(s.ctx, s.Quiet)
	began := time.Now()
	err := s.settle(semel.Ack, 0, rest...)
	if took := time.Since(began); err == nil && took >= most {
		err = fmt.Errorf("Settle waited %v while another goroutine was in Fetch", took)
	}
	cancel()
	group.Wait()
	return err
}
