package consumer_test

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// slowToTell is a store that responds slowly to the question whether a transaction can still commit. The time of the
// response must not count as time of a handler.
type slowToTell struct {
	*memstore.Store
	long time.Duration
}

func (s *slowToTell) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	b, v, err := s.Store.Begin(ctx, o, marks)
	if err != nil {
		return nil, nil, err
	}
	return &slowBatch{b.(watchable), s.long}, v, nil
}

// watchable is the set of methods of a batch of a memstore.Store.
type watchable interface {
	store.Batch[*memstore.Tx]
	store.TxStatus
}

type slowBatch struct {
	watchable
	long time.Duration
}

func (b *slowBatch) TxAborted() bool {
	pass(b.long)
	return b.watchable.TxAborted()
}

func TestTimeOuts(t *testing.T) {
	bubble(t, "law_3_a_handler_that_returns_nil_after_its_time_out_has_failed", func(t *testing.T) {
		store := memstore.New()
		c := config(newListSource(message("1", `{}`)))
		c.Timeout = time.Second
		counts := runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Attempt == 1 {
				<-ctx.Done()
				return nil // the handler ignores the error of its statement
			}
			return add(ctx, tx, m)
		}, c)
		if counts.Applied != 1 || counts.Retried != 1 || effect(t, store, "1") != "1" {
			t.Errorf("%+v, effect %q", counts, effect(t, store, "1"))
		}
	})
	late := func(name string, handler, between time.Duration) {
		bubble(t, name, func(t *testing.T) {
			store := memstore.New()
			c := config(newListSource(numbered("m", 4)...))
			c.Timeout, c.Batch.MaxTime, c.Retry.MaxAttempts = time.Second, time.Minute, 1
			counts := runs(t, &slowToTell{store, between}, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				pass(handler)
				return add(ctx, tx, m)
			}, c)
			if counts.Applied != 4 || counts.Parked != 0 || counts.Rerun != 0 {
				t.Errorf("%+v", counts)
			}
		})
	}
	late("law_7_the_time_of_one_handler_is_not_the_nexts", 900*time.Millisecond, 0)
	late("law_7_what_passes_between_two_handlers_is_neithers_time", 900*time.Millisecond, 1500*time.Millisecond)
}
