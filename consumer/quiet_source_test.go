package consumer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// moodySource is a listSource whose method Fetch behaves as the list moods says. Each Fetch uses the next element of
// moods; the last element is used for all later calls of Fetch.
type moodySource struct {
	*listSource
	moods []mood
}

type mood uint8

const (
	works mood = iota
	fails
	silent // Fetch waits, and has not reached its broker when ctx ends
)

func (s *moodySource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	now := s.moods[0]
	if len(s.moods) > 1 {
		s.moods = s.moods[1:]
	}
	switch now {
	case fails:
		return nil, errors.New("no broker answers")
	case silent:
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return s.listSource.Fetch(ctx, most)
}

func moody(moods ...mood) *moodySource {
	s := &moodySource{listSource: newListSource(message("1", `{}`)), moods: moods}
	s.endless = true
	return s
}

func TestASourceThatFailedAndIsQuiet(t *testing.T) {
	bubble(t, "trap_T86_it_is_ready_after_the_next_fetch_without_error_although_nothing_comes", func(t *testing.T) {
		seen := &witness{}
		c := config(moody(works, fails, works))
		c.Observers = []semel.Observer{seen}
		consumer := mustNew(t, memstore.New(), add, c)
		run := start(t, consumer)
		pass(time.Second)
		if ready, _ := consumer.Ready(); ready || len(seen.eventsOf(semel.EventNotReady)) != 1 {
			t.Errorf("ready %v after the failure, %d events", ready, len(seen.eventsOf(semel.EventNotReady)))
		}
		pass(20 * time.Second)
		if ready, why := consumer.Ready(); !ready || len(seen.eventsOf(semel.EventReady)) == 0 {
			t.Errorf("ready %v (%s), told %d times", ready, why, len(seen.eventsOf(semel.EventReady)))
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "trap_T86_it_is_idle_and_ends", func(t *testing.T) {
		c := config(moody(works, fails, works))
		c.IdleExit = 2 * time.Second
		began := time.Now()
		counts := runs(t, memstore.New(), add, c)
		if took := time.Since(began); counts.Applied != 1 || took > 20*time.Second {
			t.Errorf("%+v after %v", counts, took)
		}
	})
	bubble(t, "law_13_it_does_not_work_again_before_it_has_answered", func(t *testing.T) {
		seen := &witness{}
		source := moody(works, fails, silent)
		c := config(source)
		c.Observers, c.IdleExit = []semel.Observer{seen}, 2*time.Second
		consumer := mustNew(t, memstore.New(), add, c)
		run := start(t, consumer)
		pass(time.Hour)
		synctest.Wait()
		if ready, _ := consumer.Ready(); ready || len(seen.eventsOf(semel.EventReady)) != 0 {
			t.Errorf("ready %v, told %d times", ready, len(seen.eventsOf(semel.EventReady)))
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
}
