package consumer_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// ofClass is an error that contains the class that the store returns for it.
type ofClass store.Class

func (c ofClass) Error() string { return "the server said no" }

// breaking is a store whose transactions a test can break. If the test wants, the store also reports the cause.
type breaking struct {
	*watchedStore
	knows  bool
	broken error
}

type breakingBatch struct {
	store.Batch[*memstore.Tx]
	store *breaking
}

type knowingBatch struct{ *breakingBatch }

func (s *breaking) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	s.broken = nil
	b, v, err := s.watchedStore.Begin(ctx, o, marks)
	return s.able(b), v, err
}

func (s *breaking) able(b store.Batch[*memstore.Tx]) store.Batch[*memstore.Tx] {
	if s.knows {
		return knowingBatch{&breakingBatch{b, s}}
	}
	return &breakingBatch{b, s}
}

func (s *breaking) Classify(err error) store.Class {
	var c ofClass
	if errors.As(err, &c) {
		return store.Class(c)
	}
	return s.watchedStore.Classify(err)
}

func (b *breakingBatch) TxAborted() bool { return b.store.broken != nil }

func (*breakingBatch) AbortCause() error { return nil }

func (b *breakingBatch) ClassifyHandler(_ context.Context, err error) store.Class {
	return b.store.Classify(err)
}

func (b knowingBatch) AbortCause() error { return b.store.broken }

func (b *breakingBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	if b.store.broken != nil {
		b.Rollback(ctx)
		return store.Result{Outcome: store.NotCommitted, Class: store.ClassAborted, Culprit: store.NoCulprit, Err: errTest}
	}
	return b.Batch.Commit(ctx, e)
}

// swallowing runs 20 messages. The handler of message "m11" gets an error of the given class and ignores the error. The
// error occurs only in the first runs of that handler, as many as the parameter times says.
func swallowing(t *testing.T, s *breaking, class store.Class, times int, change func(*consumer.Config)) (semel.Counts, []int) {
	t.Helper()
	c := config(newListSource(numbered("m", 20)...))
	c.Workers, c.Retry.MaxAttempts = 1, 3
	if change != nil {
		change(&c)
	}
	var attempts []int
	counts := runs(t, s, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
		if m.Identity.ID != "m11" {
			return add(ctx, tx, m)
		}
		if attempts = append(attempts, m.Attempt); len(attempts) <= times {
			s.broken = ofClass(class)
			return nil
		}
		return add(ctx, tx, m)
	}, c)
	return counts, attempts
}

func TestAnErrorThatAHandlerSwallowed(t *testing.T) {
	const always = 1 << 30
	bubble(t, "trap_95_a_swallowed_error_is_charged_to_the_message_that_swallowed_it", func(t *testing.T) {
		for _, knows := range []bool{true, false} {
			for class, reason := range map[store.Class]semel.Reason{store.ClassPermanent: semel.ReasonPermanent, store.ClassRetry: semel.ReasonExhausted} {
				if !knows {
					reason = semel.ReasonExhausted
				}
				st := &breaking{watchedStore: watch(memstore.New()), knows: knows}
				counts, attempts := swallowing(t, st, class, always, nil)
				r := row(t, st.Store, "m11")
				if counts.Applied != 19 || counts.Parked != 1 || r.Reason != reason || r.Attempts != len(attempts) {
					t.Errorf("known %t, class %d: %+v, %+v, attempts %v", knows, class, counts, r, attempts)
				}
				if says := strings.Contains(r.LastError, "the server said no"); says != knows || !strings.Contains(r.LastError, "returned nil") {
					t.Errorf("known %t, class %d: the row has the error %q", knows, class, r.LastError)
				}
			}
		}
	})
	bubble(t, "trap_97_contention_that_a_handler_swallowed_is_nobodys_attempt", func(t *testing.T) {
		st := &breaking{watchedStore: watch(memstore.New()), knows: true}
		seen := &witness{}
		counts, attempts := swallowing(t, st, store.ClassContended, 2, func(c *consumer.Config) { c.Observers = []semel.Observer{seen} })
		if counts.Applied != 20 || counts.Retried != 0 || len(attempts) != 3 || attempts[2] != 1 || len(seen.eventsOf(eventkind.Contended)) != 2 {
			t.Errorf("%+v, attempts %v, told %d times", counts, attempts, len(seen.eventsOf(eventkind.Contended)))
		}
	})
	bubble(t, "law_13_a_lost_connection_that_a_handler_swallowed_is_nobodys_attempt", func(t *testing.T) {
		st := &breaking{watchedStore: watch(memstore.New()), knows: true}
		seen := &witness{}
		counts, attempts := swallowing(t, st, store.ClassDown, 2, func(c *consumer.Config) { c.Observers = []semel.Observer{seen} })
		if counts.Applied != 20 || counts.Retried != 0 || len(attempts) != 3 || attempts[2] != 1 || len(seen.eventsOf(semel.EventNotReady)) == 0 {
			t.Errorf("%+v, attempts %v, told %d times", counts, attempts, len(seen.eventsOf(semel.EventNotReady)))
		}
	})
	bubble(t, "trap_95_of_a_handler_of_the_whole_batch_is_halved_to_its_message", func(t *testing.T) {
		st := &breaking{watchedStore: watch(memstore.New()), knows: true}
		c := config(newListSource(numbered("m", 20)...))
		c.Workers = 1
		running, err := consumer.NewBatch(st, func(ctx context.Context, tx *memstore.Tx, all []*semel.Message) error {
			for _, m := range all {
				if m.Identity.ID == "m11" {
					st.broken = ofClass(store.ClassPermanent)
					return nil
				}
				if err := add(ctx, tx, m); err != nil {
					return err
				}
			}
			return nil
		}, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := running.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := row(t, st.Store, "m11"); running.Counts().Applied != 19 || r.Reason != semel.ReasonPermanent || !strings.Contains(r.LastError, "the server said no") {
			t.Errorf("%+v, %+v", running.Counts(), r)
		}
	})
}
