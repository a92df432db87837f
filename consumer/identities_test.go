package consumer_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

func TestScopesOfIdentities(t *testing.T) {
	bubble(t, "trap_22_two_consumers_of_one_store_both_apply_one_message", func(t *testing.T) {
		store := memstore.New()
		for _, name := range []string{"billing", "shipping"} {
			c := config(newListSource(message("1", `{}`)))
			c.Name = name
			if counts := runs(t, store, add, c); counts.Applied != 1 {
				t.Errorf("%s: %+v", name, counts)
			}
		}
		if effect(t, store, "1") != "2" {
			t.Errorf("effect %s", effect(t, store, "1"))
		}
	})
	bubble(t, "trap_T17_the_second_subscriber_is_hidden_neither_by_a_marker_nor_by_a_parked_row", func(t *testing.T) {
		store := memstore.New()
		runs(t, store, func(context.Context, *memstore.Tx, *semel.Message) error { return semel.Park("look") }, config(newListSource(message("1", `{}`))))
		c := config(newListSource(message("1", `{}`)))
		c.Name = "shipping"
		if counts := runs(t, store, add, c); counts.Applied != 1 || row(t, store, "1").Repeated != 0 {
			t.Errorf("%+v, %+v", counts, rows(t, store))
		}
	})
	bubble(t, "trap_75_one_id_of_two_sources_is_two_messages", func(t *testing.T) {
		from := func(source string) *semel.Message {
			m := message("1", `{}`)
			m.Headers = append(m.Headers, semel.Header{Name: "ce-source", Value: []byte(source)}, semel.Header{Name: "ce-id", Value: []byte("1")},
				semel.Header{Name: "ce-specversion", Value: []byte("1.0")}, semel.Header{Name: "ce-type", Value: []byte("order")})
			return m
		}
		store := memstore.New()
		c := config(newListSource(from("/a"), from("/b"), from("/a")))
		c.Identity = identity.CloudEvents()
		if counts := runs(t, store, add, c); counts.Applied != 2 || counts.Duplicates != 1 || effect(t, store, "1") != "2" {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "A6_any_bytes_are_an_id_and_ids_that_only_look_alike_are_different", func(t *testing.T) {
		ids := []string{"a", "A", "a ", " a", "\x00", "\x00\x00", "é", "e\u0301", "\xff\xfe", "1", "01", "1.0", "x\ny", string(make([]byte, semel.MaxID))}
		var messages []*semel.Message
		for _, id := range ids {
			messages = append(messages, message(id, `{}`), message(id, `{}`))
		}
		store := memstore.New()
		counts := runs(t, store, add, config(newListSource(messages...)))
		if n := int64(len(ids)); counts.Applied != n || counts.Duplicates != n {
			t.Errorf("%+v", counts)
		}
	})
}

// duplicateCases contains the possible results of a message. For each result a test checks what the store answers
// for a duplicate of the message.
var duplicateCases = []struct {
	name  string
	says  error
	want  store.Outcome
	state store.RowState
}{
	{"applied", nil, store.Applied, ""},
	{"parked", semel.Park("look"), store.Parked, store.StateParked},
	{"discarded", semel.Discard("not ours"), store.Discarded, store.StateDiscarded},
}

func TestTheVerdictOnACopy(t *testing.T) {
	bubble(t, "trap_10_what_became_of_the_first_decides_what_a_copy_is", func(t *testing.T) {
		for _, a := range duplicateCases {
			st := memstore.New()
			runs(t, st, func(context.Context, *memstore.Tx, *semel.Message) error { return a.says }, config(newListSource(message("1", `{}`))))
			if o := outcome(t, st, "1"); !o.Already(a.want) {
				t.Errorf("%s: verdict %s, want %s", a.name, o, a.want)
			}
			ran, source := 0, newListSource(message("1", `{}`))
			counts := runs(t, st, func(context.Context, *memstore.Tx, *semel.Message) error { ran++; return nil }, config(source))
			if counts.Duplicates != 1 || ran != 0 || len(source.settled) != 1 {
				t.Errorf("%s: a copy is %+v, ran %d", a.name, counts, ran)
			}
			if a.state != "" {
				if r := row(t, st, "1"); r.State != a.state || r.Repeated != 1 {
					t.Errorf("%s: %+v", a.name, r)
				}
			}
		}
	})
	bubble(t, "trap_T43_no_copy_is_told_done_after_an_attempt_that_failed", func(t *testing.T) {
		for _, fails := range []func() error{
			func() error { return errTest },
			func() error { panic("no") },
			func() error { return semel.RetryAfter(errTest, time.Second) },
		} {
			st, tries := memstore.New(), 0
			counts := runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				if tries++; tries == 1 {
					return fails()
				}
				return add(ctx, tx, m)
			}, config(newListSource(message("1", `{}`), message("1", `{}`))))
			if counts.Applied != 1 || counts.Duplicates != 1 || effect(t, st, "1") != "1" || tries != 2 {
				t.Errorf("%+v, effect %s, %d tries", counts, effect(t, st, "1"), tries)
			}
		}
	})
	bubble(t, "trap_4_there_is_no_way_to_settle_before_the_commit", func(t *testing.T) {
		st, source := watch(memstore.New()), watchSource(message("1", `{}`))
		st.onCommit = func(ctx context.Context, commit func(context.Context) store.Result) store.Result {
			if source.isSettled(0) != 0 {
				t.Error("settled before the commit")
			}
			return commit(ctx)
		}
		runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if source.isSettled(0) != 0 {
				t.Error("settled before the handler")
			}
			return add(ctx, tx, m)
		}, config(source))
		if source.isSettled(0) != 1 {
			t.Error("not settled")
		}
	})
	bubble(t, "trap_15_a_message_that_always_fails_is_parked_with_payload_and_error_and_the_others_go_on", func(t *testing.T) {
		st, source := memstore.New(), newListSource(numbered("m", 10)...)
		c := config(source)
		c.Retry.MaxAttempts = 4
		ran := 0
		counts := runs(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if m.Identity.ID == "m3" {
				ran++
				return fmt.Errorf("try %d: %w", ran, errTest)
			}
			return add(ctx, tx, m)
		}, c)
		r := row(t, st, "m3")
		if counts.Applied != 9 || counts.Parked != 1 || ran != 4 || r.Attempts != 4 || r.Reason != semel.ReasonExhausted || string(r.Message.Body) != `{"n":3}` || r.FirstError != "try 1: no" || r.LastError != "try 4: no" || len(source.settled) != 10 {
			t.Errorf("%+v, ran %d, %+v", counts, ran, r)
		}
	})
}

func TestStateAfterACrash(t *testing.T) {
	bubble(t, "trap_3_a_death_before_the_commit_leaves_nothing_and_the_redelivery_is_applied_once", func(t *testing.T) {
		st := watch(memstore.New())
		ctx, die := context.WithCancel(t.Context())
		st.onCommit = func(context.Context, func(context.Context) store.Result) store.Result {
			die()
			return lostCommit // the connection was lost before the request reached the store
		}
		src := newListSource(numbered("m", 10)...)
		c := config(src)
		c.Drain = time.Second
		if err := mustNew(t, st, add, c).Run(ctx); err != nil {
			t.Fatal(err)
		}
		if len(src.settled) != 0 || effect(t, st.Store, "m3") != "" {
			t.Errorf("settled %v, effect %q", src.settled, effect(t, st.Store, "m3"))
		}
	})
	bubble(t, "trap_2_a_death_between_commit_and_settle_is_a_duplicate_at_the_next_start", func(t *testing.T) {
		st, src := memstore.New(), watchSource(numbered("m", 10)...)
		src.endless = true
		src.onSettle = func(context.Context, []source.Settlement) ([]int, error) { return nil, errTest }
		c := config(src)
		c.Drain = time.Second
		run := start(t, mustNew(t, st, add, c))
		pass(time.Second)
		run.stop()
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		if len(src.settled) != 0 || effect(t, st, "m3") != "1" {
			t.Fatalf("settled %v, effect %s", src.settled, effect(t, st, "m3"))
		}
		if counts := runs(t, st, add, config(newListSource(numbered("m", 10)...))); counts.Duplicates != 10 || effect(t, st, "m3") != "1" {
			t.Errorf("%+v", counts)
		}
	})
}
