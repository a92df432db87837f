package consumer_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// farSource is a source that needs some time to reach its broker. If its Fetch is cancelled before, the next
// Fetch needs that time again. The first Fetch may fail at once.
type farSource struct {
	*listSource
	fails bool
	needs time.Duration
}

func (s *farSource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if s.fails {
		s.fails = false
		return nil, errors.New("no broker answers")
	}
	found := time.NewTimer(s.needs)
	defer found.Stop()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-found.C:
	}
	s.needs = 0
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.listSource.Fetch(ctx, most)
}

func TestASourceThatNeedsLongToAnswer(t *testing.T) {
	for name, needs := range map[string]time.Duration{
		"law_11_after_a_failure_it_is_given_more_time_with_each_fetch": 50 * time.Second,
		"law_11_a_fetch_that_was_cancelled_cancels_no_later_one":       10 * time.Second,
	} {
		bubble(t, name, func(t *testing.T) {
			source := &farSource{listSource: newListSource(message("1", `{}`)), fails: true, needs: needs}
			consumer := mustNew(t, memstore.New(), add, config(source))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			if err := consumer.Run(ctx); err != nil || consumer.Counts().Applied != 1 {
				t.Errorf("%+v after ten minutes: %v", consumer.Counts(), err)
			}
		})
	}
	bubble(t, "law_13_one_that_has_never_answered_is_not_empty", func(t *testing.T) {
		c := config(&farSource{listSource: newListSource(message("1", `{}`)), needs: 24 * time.Hour})
		c.IdleExit = 2 * time.Second
		consumer := mustNew(t, memstore.New(), add, c)
		run := start(t, consumer)
		pass(time.Hour)
		select {
		case err := <-run.ended:
			t.Fatalf("the run has ended as if nothing were there: %v", err)
		default:
		}
		run.stop()
		if err := run.wait(); err != nil {
			t.Error(err)
		}
	})
}
