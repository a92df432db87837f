package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// idler is a listSource with Info.Idle.
type idler struct {
	*listSource
	answers []func() (bool, []semel.Unfinished, error)
	asked   int
}

func (s *idler) Info() source.Info { return source.Info{Idle: s.isIdle} }

func (s *idler) isIdle(context.Context) (bool, []semel.Unfinished, error) {
	answer := s.answers[min(s.asked, len(s.answers)-1)]
	s.asked++
	return answer()
}

func TestASourceIsAskedBeforeARunEndsIdle(t *testing.T) {
	held := []semel.Unfinished{{Lane: "a", Messages: 3, Reason: "held up"}}
	stands := []semel.Unfinished{{Lane: "a", Messages: 3, Reason: "it is lost", Fault: true}}
	says := func(idle bool, left []semel.Unfinished, err error) func() (bool, []semel.Unfinished, error) {
		return func() (bool, []semel.Unfinished, error) { return idle, left, err }
	}
	run := func(t *testing.T, answers ...func() (bool, []semel.Unfinished, error)) (*idler, *consumer.Consumer[*memstore.Tx], time.Duration, error) {
		source := newListSource()
		source.lanes, source.endless = []string{"a"}, true
		asked := &idler{listSource: source, answers: answers}
		c := config(asked)
		c.IdleExit = 2 * time.Second
		running, err := consumer.New(memstore.New(), add, c)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = running.Run(t.Context())
		return asked, running, time.Since(began).Round(time.Second), err
	}
	bubble(t, "trap_T95_while_it_has_more_the_run_goes_on", func(t *testing.T) {
		s, _, took, err := run(t, says(false, nil, nil), says(false, nil, nil), says(true, nil, nil))
		if err != nil || s.asked != 3 || took != 6*time.Second {
			t.Errorf("asked %d times within %v: %v", s.asked, took, err)
		}
	})
	bubble(t, "trap_T95_what_it_cannot_deliver_is_known_when_the_run_has_ended", func(t *testing.T) {
		s, c, _, err := run(t, says(true, held, nil))
		if err != nil || s.asked != 1 || !slices.Equal(c.Unfinished(), held) {
			t.Errorf("asked %d times, left %+v: %v", s.asked, c.Unfinished(), err)
		}
	})
	bubble(t, "trap_T95_a_lane_that_stands_still_fails_the_run", func(t *testing.T) {
		if _, c, _, err := run(t, says(true, stands, nil)); !errors.Is(err, semel.ErrUnfinished) || !slices.Equal(c.Unfinished(), stands) {
			t.Errorf("left %+v: %v", c.Unfinished(), err)
		}
	})
	bubble(t, "trap_T95_a_source_that_does_not_know_is_asked_again", func(t *testing.T) {
		s, _, took, err := run(t, says(false, nil, errors.New("no broker answers")), says(true, nil, nil))
		if err != nil || s.asked != 2 || took < 4*time.Second {
			t.Errorf("asked %d times within %v: %v", s.asked, took, err)
		}
	})
	bubble(t, "trap_T95_who_stops_a_run_does_not_wait_for_the_answer", func(t *testing.T) {
		source := newListSource()
		source.lanes, source.endless = []string{"a"}, true
		asked := &idler{listSource: source, answers: []func() (bool, []semel.Unfinished, error){says(false, nil, nil)}}
		c := config(asked)
		c.IdleExit = time.Hour
		running, err := consumer.New(memstore.New(), add, c)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := running.Run(ctx); err != nil || asked.asked != 0 {
			t.Errorf("asked %d times: %v", asked.asked, err)
		}
	})
	bubble(t, "case_10_a_stop_ends_the_question_and_is_no_fault_of_the_source", func(t *testing.T) {
		// Before each call of the source's Idle, the last Fetch was cancelled, or has returned by itself.
		for _, empty := range []time.Duration{time.Hour, time.Second} {
			var said log
			source := &questioned{listSource: newListSource(), empty: empty}
			source.lanes = []string{"a"}
			c := config(source)
			c.IdleExit, c.Logger = 2*time.Second, said.logger()
			run := start(t, mustNew(t, memstore.New(), add, c))
			pass(5 * time.Second)
			began := time.Now()
			run.stop()
			err := run.wait()
			if took := time.Since(began); err != nil || took != 0 || source.asked != 1 {
				t.Errorf("empty after %v: asked %d times, %v after %v", empty, source.asked, err, took)
			}
			if text := said.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "the consumer starts") || !strings.Contains(text, "the consumer has ended") {
				t.Errorf("empty after %v: the log says %s", empty, text)
			}
		}
	})
}

// questioned is a source that becomes empty. The method Idle of questioned does not return before its context ends.
type questioned struct {
	*listSource
	empty time.Duration
	asked int
}

func (s *questioned) Fetch(ctx context.Context, _ source.Bound) ([]source.Delivery, error) {
	if s.fetches++; s.fetches == 1 {
		s.observer.Given(source.Lane{ID: "a", Epoch: 1})
	}
	select {
	case <-time.After(s.empty):
	case <-ctx.Done():
	}
	return nil, nil
}

func (s *questioned) Info() source.Info { return source.Info{Idle: s.isIdle} }

func (s *questioned) isIdle(ctx context.Context) (bool, []semel.Unfinished, error) {
	s.asked++
	<-ctx.Done()
	return false, nil, fmt.Errorf("the ends of the log: %w", ctx.Err())
}
