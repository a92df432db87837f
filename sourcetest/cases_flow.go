package sourcetest

import (
	"fmt"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/worker"
)

func flowCases() []Case {
	return []Case{
		{"pause_and_resume", "A paused lane delivers nothing, beyond what was under way, until it is resumed; other lanes go on.", pauseAndResume},
		{"flow_loses_nothing", "Pausing and resuming loses nothing, whether the source can or not.", flowLosesNothing},
	}
}

func pauseAndResume(s *session) error {
	n := 20 * s.Can.Lanes
	s.publish(n)
	s.open()
	first, err := s.one()
	if err != nil || !s.Can.Pauses {
		return err
	}
	s.source.Flow(first.Lane, false)
	lane := number(first.Message) % s.Can.Lanes
	if _, err := s.fetch(s.Quiet, wide); err != nil { // what was under way
		return err
	}
	if err := s.quiet(s.Quiet, func(n int) bool { return n%s.Can.Lanes != lane }); err != nil {
		return fmt.Errorf("while lane %q was paused: %w", first.Lane.ID, err)
	}
	for other := range n {
		if other%s.Can.Lanes != lane && s.times[string(s.published[other].Body)] == 0 {
			return fmt.Errorf("message %d of another lane was held up by a paused one", other)
		}
	}
	if len(s.times) == n && s.Can.Lanes == 1 {
		return fmt.Errorf("all %d messages came at once from a Fetch that was bounded to 1", n)
	}
	s.source.Flow(first.Lane, true)
	return s.collect(n)
}

// one fetches until one delivery is there.
func (s *session) one() (semel.Delivery, error) {
	for range 1000 {
		got, err := s.fetch(s.Patience, semel.Bound{Messages: 1, Bytes: 1})
		if err != nil || len(got) > 0 {
			return append(got, semel.Delivery{})[0], err
		}
	}
	return semel.Delivery{}, fmt.Errorf("nothing was delivered")
}

func flowLosesNothing(s *session) error {
	s.publish(60)
	s.open()
	for range 5 {
		d, err := s.one()
		if err != nil {
			return err
		}
		s.source.Flow(d.Lane, false)
		s.source.Flow(d.Lane, true)
	}
	return s.collect(60)
}

// beside settles in a second goroutine what the first one fetches.
func beside(s *session) error {
	const n = 500
	s.publish(n)
	s.open()
	var group worker.Group
	var settler settler
	todo := make(chan []semel.Delivery, n)
	group.Go(func() { settler.run(s, todo) })
	err := s.collectInto(n, todo)
	close(todo)
	group.Wait()
	if err == nil {
		err = settler.err
	}
	if err != nil || !s.Can.Remembers {
		return err
	}
	if err := s.reopen(); err != nil {
		return err
	}
	return s.quiet(s.Quiet, none)
}

// collectInto is collect with small batches, which it passes on.
func (s *session) collectInto(n int, todo chan<- []semel.Delivery) error {
	for range 10 * n {
		if len(s.times) == n || s.ended {
			break
		}
		got, err := s.fetch(s.Patience, semel.Bound{Messages: 3, Bytes: 1 << 20})
		if err != nil {
			return err
		}
		if len(got) > 0 {
			todo <- got
		}
	}
	if len(s.times) < n {
		return fmt.Errorf("%d of %d messages were delivered", len(s.times), n)
	}
	return nil
}

type settler struct {
	once sync.Once
	err  error
}

func (r *settler) run(s *session, todo <-chan []semel.Delivery) {
	for batch := range todo {
		if err := s.settle(semel.Ack, 0, batch...); err != nil {
			r.once.Do(func() { r.err = err })
		}
	}
}
