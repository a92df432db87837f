package consumer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// oneWriter is a store with a single writer: a batch waits until the previous batch has ended.
type oneWriter struct {
	*opening
	turn   chan struct{}
	beside atomic.Int32 // number of claims during a batch
}

// Claim waits for the open batch, as in a database with a single writer.
func (s *oneWriter) Claim(ctx context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		return s.opening.Claim(ctx, o)
	default:
		s.beside.Add(1)
		return nil, errTest
	}
}

func (s *oneWriter) Limits() store.Limits { return store.Limits{SingleWriter: true} }

func (s *oneWriter) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	b, v, err := s.opening.Begin(ctx, o, marks)
	if err != nil {
		<-s.turn
		return nil, nil, err
	}
	return turned{b, s}, v, nil
}

type turned struct {
	store.Batch[*memstore.Tx]
	s *oneWriter
}

func (b turned) Commit(ctx context.Context, e store.Ending) store.Result {
	defer func() { <-b.s.turn }()
	return b.Batch.Commit(ctx, e)
}

func (b turned) Rollback(ctx context.Context) {
	defer func() { <-b.s.turn }()
	b.Batch.Rollback(ctx)
}

func TestLeasesOfAStoreWithOneWriter(t *testing.T) {
	bubble(t, "T4_C5_a_handler_of_three_leases_that_fails_has_had_an_attempt_and_keeps_its_claim", func(t *testing.T) {
		st := &opening{Store: memstore.New()}
		fillInbox(t, st.Store, 1)
		c := withoutSource(config(nil))
		c.Inbox.Lease, c.Retry.InitialDelay, c.IdleExit = 2*time.Second, time.Millisecond, time.Minute
		entries := 0
		counts := runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			pass(6 * time.Second)
			if entries++; entries < 3 {
				return errTest
			}
			return add(ctx, tx, m)
		}, c)
		rows, err := st.Rows(t.Context(), store.RowFilter{})
		if err != nil || entries != 3 || counts.Inbox.Applied != 1 || counts.Inbox.Lost != 0 || rows[0].Attempts != 3 || rows[0].LastError != errTest.Error() {
			t.Errorf("%v: %d entries, %+v, %+v", err, entries, counts.Inbox, rows)
		}
	})
	bubble(t, "D3_handlers_that_take_a_lease_each_wait_their_turn_outside_of_the_store_and_lose_nothing", func(t *testing.T) {
		st := &oneWriter{opening: &opening{Store: memstore.New()}, turn: make(chan struct{}, 1)}
		fillInbox(t, st.Store, 12)
		dies(t, st.Store, 2*time.Second) // now the store has recorded that a process started the message
		c := withoutSource(config(nil))
		c.Workers, c.Inbox.Lease, c.IdleExit = 4, 9*time.Second, time.Minute
		var said []string
		c.Observers = append(c.Observers, observerFunc(func(e semel.Event) {
			if e.Kind == semel.EventNotReady || e.Kind == eventkind.ClaimLost {
				said = append(said, string(e.Kind))
			}
		}))
		counts := runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			pass(8 * time.Second)
			return add(ctx, tx, m)
		}, c)
		rows, err := st.Rows(t.Context(), store.RowFilter{})
		if err != nil || len(rows) != 12 || counts.Inbox.Applied != 12 || counts.Inbox.Lost != 0 || len(said) != 0 || st.beside.Load() != 0 {
			t.Errorf("%v: %+v, %q, %d claims beside a batch", err, counts.Inbox, said, st.beside.Load())
		}
		for _, r := range rows {
			if r.State != store.StateCompleted || r.Attempts != 1 || r.Started != 0 {
				t.Errorf("%+v", r)
			}
		}
	})
	bubble(t, "D3_a_claim_that_waits_for_a_connection_keeps_its_lease", func(t *testing.T) {
		st := watch(memstore.New())
		fillInbox(t, st.Store, 1)
		waited := false
		st.onBegin = func(context.Context, []store.Mark) error {
			if !waited {
				waited = true
				pass(20 * time.Second)
			}
			return nil
		}
		c := withoutSource(config(nil))
		c.Inbox.Lease, c.IdleExit = 6*time.Second, time.Minute
		counts := runs(t, st, add, c)
		if !waited || counts.Inbox.Applied != 1 || counts.Inbox.Lost != 0 || counts.Inbox.Claimed != 1 {
			t.Errorf("waited: %v, %+v", waited, counts.Inbox)
		}
	})
	bubble(t, "C6_D5_what_waits_to_be_tried_is_given_back_in_time_and_counts_as_no_start", func(t *testing.T) {
		st := memstore.New()
		fillInbox(t, st, 60)
		c := withoutSource(config(nil))
		c.Workers, c.Inbox.Lease, c.IdleExit, c.Retry.SerialAfter, c.Retry.MaxAttempts, c.Retry.Budget.PerSecond = 2, 3*time.Second, time.Minute, 3, 100, 1
		c.Retry.InitialDelay, c.Retry.MaxDelay = time.Millisecond, time.Second
		began := time.Now()
		counts := runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if time.Since(began) < 30*time.Second {
				return errTest
			}
			return add(ctx, tx, m)
		}, c)
		if n := counts.Inbox; n.Applied != 60 || n.Lost != 0 || n.Parked != 0 || n.Released == 0 {
			t.Errorf("%+v", n)
		}
		for _, r := range rows(t, st) {
			if r.State != store.StateCompleted || r.Started != 0 {
				t.Errorf("%+v", r)
			}
		}
	})
}
