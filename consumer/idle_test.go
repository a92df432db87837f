package consumer_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// lateSource is a listSource that assigns its first lane late, or whose Fetch fails at first.
type lateSource struct {
	*listSource
	// joins is how long the source waits before it assigns its first lane.
	joins time.Duration
	// fails is the time until which Fetch fails.
	fails time.Time
}

func (s *lateSource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if time.Now().Before(s.fails) {
		return nil, errors.New("no broker answers")
	}
	if wait := s.joins; wait > 0 {
		s.joins = 0
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(wait):
		}
	}
	return s.listSource.Fetch(ctx, most)
}

func TestARunDoesNotEndWhileASourceMayHaveMore(t *testing.T) {
	idle := func(t *testing.T, s *lateSource) (semel.Counts, time.Duration) {
		s.endless = true
		c := config(s)
		c.IdleExit = 2 * time.Second
		began := time.Now()
		counts := runs(t, memstore.New(), add, c)
		return counts, time.Since(began).Round(time.Second)
	}
	bubble(t, "a_source_that_waits_for_its_first_lane", func(t *testing.T) {
		counts, took := idle(t, &lateSource{listSource: newListSource(message("1", `{}`)), joins: 20 * time.Second})
		if counts.Applied != 1 || took != 22*time.Second {
			t.Errorf("%+v after %v", counts, took)
		}
	})
	bubble(t, "a_lane_that_is_empty_counts_from_when_it_was_given", func(t *testing.T) {
		source := newListSource()
		source.lanes = []string{"a"}
		if _, took := idle(t, &lateSource{listSource: source, joins: 20 * time.Second}); took != 22*time.Second {
			t.Errorf("it took %v", took)
		}
	})
	bubble(t, "a_source_that_never_has_a_lane_ends_after_a_minute", func(t *testing.T) {
		if _, took := idle(t, &lateSource{listSource: newListSource()}); took != time.Minute {
			t.Errorf("it took %v", took)
		}
	})
	bubble(t, "a_source_that_cannot_be_read", func(t *testing.T) {
		counts, took := idle(t, &lateSource{listSource: newListSource(message("1", `{}`)), fails: time.Now().Add(5 * time.Minute)})
		if counts.Applied != 1 || took < 5*time.Minute || took > 5*time.Minute+10*time.Second {
			t.Errorf("%+v after %v", counts, took)
		}
	})
}

func TestARunEndsIdleOnlyWhereItMay(t *testing.T) {
	bubble(t, "trap_T95_E1_a_sender_does_not_while_its_writer_runs", func(t *testing.T) {
		store := memstore.New()
		w := intentsOf(t, store)
		var ended atomic.Bool
		go func() {
			defer ended.Store(true)
			<-time.After(20 * time.Second)
			m := semel.NewMessage(semel.Key{Consumer: "billing", Source: "shop", ID: "1"}, nil)
			if err := inTransaction(t, store, func(tx *memstore.Tx) error { return w.Write(t.Context(), tx, m, mail(m)) }); err != nil {
				t.Error(err)
			}
		}()
		var sent []*semel.Message
		c := sender(t, store, "mailer", &sent, func(c *consumer.Config) { c.IdleExit, c.MayEnd = 50*time.Millisecond, ended.Load })
		began := time.Now()
		if err := c.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began).Round(time.Second); len(sent) != 1 || took != 20*time.Second {
			t.Errorf("%d are sent after %v", len(sent), took)
		}
	})
	bubble(t, "what_panics_ends_no_run", func(t *testing.T) {
		c, asked := config(newListSource(message("1", `{}`))), 0
		c.Source.(*listSource).endless = true
		c.IdleExit, c.MayEnd = time.Second, func() bool {
			if asked++; asked < 3 {
				panic("not yet")
			}
			return true
		}
		if counts := runs(t, memstore.New(), add, c); counts.Applied != 1 || asked != 4 {
			t.Errorf("%+v after %d questions", counts, asked)
		}
	})
}
