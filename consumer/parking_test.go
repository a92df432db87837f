package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// unparked returns a configuration without ActionPark, for a store without an inbox.
func unparked(src source.Source) consumer.Config {
	c := config(src)
	c.Retry.OnExhausted, c.OnConflict, c.OnBadIdentity, c.OnPrecondition = consumer.ActionHalt, consumer.ActionHalt, consumer.ActionHalt, consumer.ActionRetry
	return c
}

// rowless is a store without an inbox. rowless counts the rows that commits pass to the store.
type rowless struct {
	store.TxStore[*memstore.Tx]
	rows *atomic.Int32
}

func newRowless(s *memstore.Store) rowless { return rowless{s, new(atomic.Int32)} }

func (s rowless) Begin(ctx context.Context, o store.TxOptions, marks []store.Mark) (store.Batch[*memstore.Tx], []store.Verdict, error) {
	b, v, err := s.TxStore.Begin(ctx, o, marks)
	return rowlessBatch{b, s.rows}, v, err
}

type rowlessBatch struct {
	store.Batch[*memstore.Tx]
	rows *atomic.Int32
}

func (b rowlessBatch) Commit(ctx context.Context, e store.Ending) store.Result {
	b.rows.Add(int32(len(e.Rows)))
	return b.Batch.Commit(ctx, e)
}

func TestAPolicyThatParksWithoutAnInbox(t *testing.T) {
	for field, set := range map[string]func(*consumer.Config){
		"Retry.OnExhausted":   func(c *consumer.Config) { c.Retry.OnExhausted = consumer.ActionPark },
		"OnConflict":          func(c *consumer.Config) { c.OnConflict = consumer.ActionPark },
		"OnBadIdentity":       func(c *consumer.Config) { c.OnBadIdentity = consumer.ActionPark },
		"OnPrecondition":      func(c *consumer.Config) { c.OnPrecondition = consumer.ActionPark },
		"OnFiltered":          func(c *consumer.Config) { c.Filter.Types, c.OnFiltered = []string{"paid"}, consumer.OnFilteredPark },
		"Retention.OnExpired": func(c *consumer.Config) { c.Retention = consumer.RetentionPolicy{Keep: time.Hour} },
		"OnParked":            func(c *consumer.Config) { c.Lanes, c.OnParked = consumer.LanesKey, consumer.OnParkedBlock },
	} {
		t.Run("case_7_it_is_refused_with_the_field_and_what_to_set/"+field, func(t *testing.T) {
			s, c := memstore.New(), unparked(nil)
			set(&c)
			if _, err := consumer.New(s, add, c); err != nil {
				t.Errorf("with an inbox: %v", err)
			}
			_, err := consumer.New(linesAndReaper{s, s, s}, add, c)
			if !errors.Is(err, semel.ErrUnsupported) || !strings.Contains(err.Error(), "set "+field+" to ") || !strings.Contains(err.Error(), "store.Inbox") || strings.Count(err.Error(), "set ") != 1 {
				t.Errorf("without an inbox: %v", err)
			}
		})
	}
	t.Run("case_6_claims_without_rows_are_no_inbox_in_which_a_message_could_wait", func(t *testing.T) {
		for _, set := range []func(*consumer.Config){
			func(c *consumer.Config) { c.Retry.MaxDelay = time.Hour },
			func(c *consumer.Config) { c.Strategy = consumer.StrategyInbox },
		} {
			s, c := memstore.New(), unparked(nil)
			set(&c)
			if _, err := consumer.New(leasesAlone{s, s}, add, c); !errors.Is(err, semel.ErrUnsupported) || !strings.Contains(err.Error(), "no inbox") {
				t.Error(err)
			}
		}
	})
	t.Run("case_7_nothing_is_accepted_without_an_inbox", func(t *testing.T) {
		s := memstore.New()
		b, _, err := s.Begin(t.Context(), store.TxOptions{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Rollback(t.Context())
		running := mustNew(t, store.TxStore[*memstore.Tx](callersAlone{s, s}), add, unparked(nil))
		if _, err := running.Accept(t.Context(), b.Tx(store.All), message("1", `{}`)); !errors.Is(err, semel.ErrUnsupported) || !strings.Contains(err.Error(), "store.Inbox") {
			t.Error(err)
		}
		if v, err := running.TryMark(t.Context(), b.Tx(store.All), message("1", `{}`)); err != nil || v.Kind != store.Fresh {
			t.Errorf("TryMark says %v, %v", v, err)
		}
	})
	t.Run("case_7_the_default_is_refused_with_all_of_its_fields", func(t *testing.T) {
		for name, made := range map[string]func() error{
			"New": func() error { _, err := consumer.New(plain(memstore.New()), add, config(nil)); return err },
			"NewBatch": func() error {
				_, err := consumer.NewBatch(plain(memstore.New()), func(context.Context, *memstore.Tx, []*semel.Message) error { return nil }, config(nil))
				return err
			},
		} {
			err := made()
			for _, field := range []string{"Retry.OnExhausted", "OnConflict", "OnBadIdentity", "OnPrecondition"} {
				if err == nil || !strings.Contains(err.Error(), "set "+field+" to ") {
					t.Errorf("%s does not name %s: %v", name, field, err)
				}
			}
		}
	})
}

// linesAndReaper is a store that implements admin.Lines and store.Reaper but has no inbox.
type linesAndReaper struct {
	store.TxStore[*memstore.Tx]
	admin.Lines
	store.Reaper
}

// leasesAlone is a store with claims but without rows.
type leasesAlone struct {
	store.TxStore[*memstore.Tx]
	store.Leases
}

// callersAlone is a store that implements store.CallerTx and has no inbox.
type callersAlone struct {
	store.TxStore[*memstore.Tx]
	store.CallerTx[*memstore.Tx]
}

// TestNoMessageIsLostWithoutAnInbox checks that every acked message was applied, dead-lettered, or discarded
// by a decision.
func TestNoMessageIsLostWithoutAnInbox(t *testing.T) {
	ends := func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
		switch string(m.Body) {
		case "bad":
			return semel.Permanent(errTest)
		case "worse":
			return errTest
		case "park":
			return semel.Park("look at it")
		case "unmet":
			return semel.PreconditionFailed("status")
		case "discard":
			return semel.Discard("not ours")
		case "later":
			return semel.RetryAfter(errTest, time.Hour)
		}
		return tx.Add("effect "+m.Identity.ID, 1)
	}
	bubble(t, "case_7_case_8_what_cannot_be_applied_is_a_dead_letter_and_no_row_reaches_the_store", func(t *testing.T) {
		st := memstore.New()
		rowless := newRowless(st)
		all := func() *grave {
			return bury(t, message("1", "good"), message("2", "bad"), message("3", "worse"), message("4", "unmet"), message("5", "park"),
				message("6", "later"), message("7", "discard"), message("1", "other"), message("", "nameless"), message("2", "bad"), message("7", "discard"))
		}
		g := all()
		counts := runs(t, store.TxStore[*memstore.Tx](rowless), ends, deadConfig(g))
		want := semel.Counts{Deliveries: 11, Applied: 1, Duplicates: 2, Conflicts: 1, DeadLettered: 6, Discarded: 1, Retried: counts.Retried, Rerun: counts.Rerun}
		if counts != want {
			t.Errorf("%+v", counts)
		}
		if got := fmt.Sprint(g.lies(t)); got != "map[:1 1:1 2:1 3:1 4:1 5:1 6:1]" {
			t.Errorf("dead letters: %s", got)
		}
		if n := rowless.rows.Load(); n != 0 || len(rows(t, st)) != 0 {
			t.Errorf("%d rows reached the store, and it has %+v", n, rows(t, st))
		}
		if effect(t, st, "1") != "1" || !outcome(t, st, "5").Already(store.DeadLettered) || !outcome(t, st, "7").Already(store.Discarded) {
			t.Errorf("effect %q; 5 is %v and 7 %v", effect(t, st, "1"), outcome(t, st, "5"), outcome(t, st, "7"))
		}
		again := runs(t, store.TxStore[*memstore.Tx](rowless), ends, deadConfig(all()))
		if again.Applied != 0 || again.Duplicates != 10 || again.Conflicts != 1 || rowless.rows.Load() != 0 {
			t.Errorf("again: %+v", again)
		}
	})
	for body, reason := range map[string]string{"bad": "permanent failure", "worse": "attempts exhausted", "park": "look at it", "later": "wait too long"} {
		bubble(t, "case_7_or_it_halts_the_run_and_is_not_settled/"+body, func(t *testing.T) {
			src, s := newListSource(message("1", "good"), message("2", body)), newRowless(memstore.New())
			running := mustNew(t, store.TxStore[*memstore.Tx](s), ends, unparked(src))
			err := running.Run(t.Context())
			if !errors.Is(err, semel.ErrHalted) || !strings.Contains(err.Error(), reason) || src.isSettled(1) != 0 || s.rows.Load() != 0 {
				t.Errorf("Run says %v; settled %v, %d rows", err, src.settled, s.rows.Load())
			}
		})
		bubble(t, "case_7_case_12_or_Process_returns_an_error_and_no_disposition/"+body, func(t *testing.T) {
			s := newRowless(memstore.New())
			c := unparked(nil)
			c.Retry.MaxAttempts = 1
			running := mustNew(t, store.TxStore[*memstore.Tx](s), ends, c)
			d, err := running.Process(t.Context(), message("2", body))
			if !errors.Is(err, semel.ErrHalted) || d != (consumer.Disposition{}) || s.rows.Load() != 0 {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
	bubble(t, "case_12_of_Process_what_is_applied_or_discarded_by_decision_is_acked", func(t *testing.T) {
		s := newRowless(memstore.New())
		running := mustNew(t, store.TxStore[*memstore.Tx](s), ends, unparked(nil))
		for body, want := range map[string]source.End{"good": source.EndApplied, "discard": source.EndDiscarded} {
			for _, end := range []source.End{want, source.EndDuplicate} {
				if d, err := running.Process(t.Context(), message(body, body)); err != nil || d.Kind != semel.Ack || d.Ending != end {
					t.Errorf("%s: %+v, %v", body, d, err)
				}
			}
		}
		if s.rows.Load() != 0 {
			t.Errorf("%d rows", s.rows.Load())
		}
		closed(t, running)
	})
}
