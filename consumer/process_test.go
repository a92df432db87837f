package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// answer is the result of Process for a message.
type answer struct {
	consumer.Disposition
	err error
}

// ask calls Process for each message in its own goroutine.
func ask[Tx any](ctx context.Context, c *consumer.Consumer[Tx], messages ...*semel.Message) []answer {
	answers := make([]answer, len(messages))
	var all sync.WaitGroup
	for i, m := range messages {
		all.Go(func() { answers[i].Disposition, answers[i].err = c.Process(ctx, m) })
	}
	all.Wait()
	return answers
}

func closed[Tx any](t *testing.T, c *consumer.Consumer[Tx]) {
	t.Helper()
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	addsUp(t, c.Counts())
}

func TestProcess(t *testing.T) {
	bubble(t, "case_12_concurrent_calls_share_transactions", func(t *testing.T) {
		st := watch(memstore.New())
		st.onBegin = func(context.Context, []store.Mark) error { pass(time.Millisecond); return nil }
		c := config(nil)
		c.Workers = 1
		running := mustNew(t, st, add, c)
		for i, a := range ask(t.Context(), running, numbered("m", 200)...) {
			if a.err != nil || a.Kind != semel.Ack || effect(t, st.Store, fmt.Sprint("m", i)) != "1" {
				t.Errorf("m%d: %+v", i, a)
			}
		}
		if len(st.begins) > 10 {
			t.Errorf("%d transactions for 200 concurrent calls", len(st.begins))
		}
		closed(t, running)
	})
	bubble(t, "case_12_a_failure_is_handed_back_at_once_with_the_time_to_wait_and_is_not_tried_again", func(t *testing.T) {
		ran := 0
		running := mustNew(t, memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error {
			ran++
			return semel.RetryAfter(errTest, time.Hour)
		}, config(nil))
		began := time.Now()
		d, err := running.Process(t.Context(), message("1", `{}`))
		if err != nil || d.Kind != semel.Nack || d.After != time.Hour || ran != 1 || time.Since(began) != 0 {
			t.Errorf("%+v, %v, ran %d, took %v", d, err, ran, time.Since(began))
		}
		closed(t, running)
	})
	bubble(t, "case_12_the_brokers_count_of_deliveries_is_the_attempt_and_the_last_one_parks", func(t *testing.T) {
		st, attempts := memstore.New(), []int(nil)
		c := config(nil)
		c.Retry.MaxAttempts = 3
		running := mustNew(t, st, func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
			attempts = append(attempts, m.Attempt)
			return errTest
		}, c)
		for try := 1; try <= 3; try++ {
			m := message("1", `{}`)
			m.Attempt = try
			d, err := running.Process(t.Context(), m)
			want := semel.Nack
			if try == 3 {
				want = semel.Ack
			}
			if err != nil || d.Kind != want || want == semel.Nack && d.After <= 0 {
				t.Errorf("delivery %d: %+v, %v", try, d, err)
			}
		}
		if fmt.Sprint(attempts) != "[1 2 3]" || row(t, st, "1").Attempts != 3 {
			t.Errorf("attempts %v, row %+v", attempts, rows(t, st))
		}
		if d, err := running.Process(t.Context(), message("1", `{}`)); err != nil || d.Kind != semel.Ack || row(t, st, "1").Repeated != 1 {
			t.Errorf("a copy of the parked message: %+v, %v, %+v", d, err, rows(t, st))
		}
		closed(t, running)
	})
}

func TestProcessAll(t *testing.T) {
	bubble(t, "case_12_ProcessAll_answers_each_message_in_its_place", func(t *testing.T) {
		store := memstore.New()
		running := mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			switch m.Identity.ID {
			case "m3":
				return errTest
			case "m5":
				return semel.Park("look")
			}
			return add(ctx, tx, m)
		}, config(nil))
		messages := append(numbered("m", 1000), message("", `{}`), message("m1", `{"n":1}`))
		answers, err := running.ProcessAll(t.Context(), messages)
		if err != nil || len(answers) != 1002 {
			t.Fatal(len(answers), err)
		}
		for i, a := range answers {
			want := consumer.Disposition{Kind: semel.Ack, Ending: source.EndApplied}
			switch i {
			case 3:
				want = consumer.Disposition{Kind: semel.Nack, After: a.After, Charged: true}
			case 5:
				want.Ending, want.Reason = source.EndParked, "look"
			case 1000:
				want.Ending, want.Reason = source.EndParked, semel.ReasonNoIdentity
			case 1001:
				want.Ending = source.EndDuplicate
			}
			if a != want {
				t.Errorf("%d: %+v, want %+v", i, a, want)
			}
		}
		if effect(t, store, "m1") != "1" || effect(t, store, "m3") != "" || effect(t, store, "m999") != "1" {
			t.Errorf("effects %s %s %s", effect(t, store, "m1"), effect(t, store, "m3"), effect(t, store, "m999"))
		}
		if none, err := running.ProcessAll(t.Context(), nil); err != nil || len(none) != 0 {
			t.Errorf("no messages: %v, %v", none, err)
		}
		closed(t, running)
	})
}

func TestCallsOfProcessThatEnd(t *testing.T) {
	bubble(t, "case_12_a_call_whose_context_ends_returns_and_its_message_may_come_again", func(t *testing.T) {
		st := memstore.New()
		running := mustNew(t, st, slow(10*time.Second), config(nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		m := message("1", `{}`)
		if _, err := running.Process(ctx, m); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Process says %v", err)
		}
		if d, err := running.Process(t.Context(), m); err != nil || d.Kind != semel.Ack || effect(t, st, "1") != "1" {
			t.Errorf("again: %+v, %v, effect %s", d, err, effect(t, st, "1"))
		}
		closed(t, running)
	})
	bubble(t, "case_12_Close_ends_calls_under_way_and_later_ones_with_ErrClosed", func(t *testing.T) {
		c := config(nil)
		c.Drain = time.Second
		st := memstore.New()
		running := mustNew(t, st, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			<-ctx.Done()
			return ctx.Err()
		}, c)
		under := make(chan error, 1)
		go func() { _, err := running.Process(t.Context(), message("1", `{}`)); under <- err }()
		synctest.Wait()
		closed(t, running)
		if err := <-under; !errors.Is(err, semel.ErrClosed) {
			t.Errorf("the call in progress: %v", err)
		}
		if _, err := running.Process(t.Context(), message("1", `{}`)); !errors.Is(err, semel.ErrClosed) {
			t.Errorf("a later call: %v", err)
		}
		if o := outcome(t, st, "1"); o.Kind != store.Fresh {
			t.Errorf("verdict %s", o)
		}
		closed(t, running)
	})
	bubble(t, "Close_waits_no_longer_than_its_context", func(t *testing.T) {
		running := mustNew(t, memstore.New(), slow(10*time.Second), config(nil))
		go func() { _, _ = running.Process(t.Context(), message("1", `{}`)) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := running.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close says %v", err)
		}
		closed(t, running)
	})
}

func TestCallsThatProcessRejects(t *testing.T) {
	bubble(t, "a_message_that_is_nil_is_an_error_of_the_call_and_harms_no_other", func(t *testing.T) {
		running := mustNew(t, memstore.New(), add, config(nil))
		if _, err := running.ProcessAll(t.Context(), []*semel.Message{message("1", `{}`), nil}); err == nil || !strings.Contains(err.Error(), "message 1 of 2 is nil") {
			t.Errorf("ProcessAll says %v", err)
		}
		if answer := ask(t.Context(), running, message("1", `{}`))[0]; answer.err != nil || answer.Kind != semel.Ack {
			t.Errorf("%+v", answer)
		}
		if err := running.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	bubble(t, "a_consumer_that_runs_takes_no_messages_of_Process_and_the_other_way_round", func(t *testing.T) {
		running := mustNew(t, memstore.New(), add, config(newListSource(message("1", `{}`))))
		if err := running.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := running.Process(t.Context(), message("1", `{}`)); !errors.Is(err, semel.ErrClosed) {
			t.Errorf("Process says %v", err)
		}
		if err := running.Run(t.Context()); !errors.Is(err, semel.ErrClosed) {
			t.Errorf("a second Run says %v", err)
		}
		if err := mustNew(t, memstore.New(), add, config(nil)).Run(t.Context()); err == nil {
			t.Error("Run without a source says nothing")
		}
	})
	bubble(t, "while_the_store_is_down_a_message_is_handed_back_and_not_charged", func(t *testing.T) {
		store := memstore.New(memstore.Fail(func(op string) error {
			if op == "begin" {
				return errTest
			}
			return nil
		}))
		c := config(nil)
		c.Retry.MaxAttempts = 1
		running := mustNew(t, store, add, c)
		for range 3 {
			d, err := running.Process(t.Context(), message("1", `{}`))
			if err != nil || d.Kind != semel.Nack || d.After <= 0 || d.Charged {
				t.Errorf("%+v, %v", d, err)
			}
		}
		if running.Counts().Parked != 0 {
			t.Errorf("%+v", running.Counts())
		}
		closed(t, running)
	})
}

// inNoTime passes messages to Process one after the other. Each message must be returned with a delay, and no
// time may pass.
func inNoTime[Tx any](t *testing.T, c *consumer.Consumer[Tx], ids ...string) (after time.Duration) {
	t.Helper()
	for _, id := range ids {
		began := time.Now()
		d, err := c.Process(t.Context(), message(id, `{}`))
		if err != nil || d.Kind != semel.Nack || d.After <= 0 || d.After > 5*time.Second || time.Since(began) != 0 {
			t.Errorf("%s: %+v, %v, took %v", id, d, err, time.Since(began))
		}
		after = d.After
	}
	return after
}

func TestProcessWhileTheStoreIsDown(t *testing.T) {
	bubble(t, "case_12_calls_are_handed_back_at_once_and_one_at_a_time_asks_whether_it_is_back", func(t *testing.T) {
		st := watch(memstore.New())
		down, hangs := true, time.Duration(0)
		st.onBegin = func(context.Context, []store.Mark) error {
			pass(hangs)
			if down {
				return &downError{}
			}
			return nil
		}
		running := mustNew(t, &downStore{st}, add, config(nil))
		after := inNoTime(t, running, "a", "b", "c", "d")
		if len(st.begins) != 1 {
			t.Errorf("asked %d times", len(st.begins))
		}
		pass(after)
		hangs = 20 * time.Second // as with a server that does not respond
		probe := make(chan answer, 1)
		go func() { probe <- ask(t.Context(), running, message("probe", `{}`))[0] }()
		synctest.Wait()
		inNoTime(t, running, "e", "f", "g")
		for _, a := range ask(t.Context(), running, numbered("m", 50)...) {
			if a.err != nil || a.Kind != semel.Nack || a.After <= 0 {
				t.Errorf("%+v", a)
			}
		}
		if a := <-probe; a.err != nil || a.Kind != semel.Nack || a.After <= 0 || len(st.begins) != 2 {
			t.Errorf("the call that asked: %+v; asked %d times", a, len(st.begins))
		}
		down, hangs = false, 0
		pass(5 * time.Second)
		for _, id := range []string{"a", "e", "probe", "m0"} {
			if a := ask(t.Context(), running, message(id, `{}`))[0]; a.err != nil || a.Kind != semel.Ack || effect(t, st.Store, id) != "1" {
				t.Errorf("%s when the store works again: %+v, effect %s", id, a, effect(t, st.Store, id))
			}
		}
		if counts := running.Counts(); counts.Applied != 4 || counts.Retried != 0 {
			t.Errorf("%+v", counts)
		}
		closed(t, running)
	})
}

func TestTryMark(t *testing.T) {
	bubble(t, "case_12_TryMark_marks_in_a_transaction_of_the_users", func(t *testing.T) {
		st := memstore.New()
		running := mustNew(t, st, add, config(nil))
		try := func(m *semel.Message, commit bool) (store.Verdict, error) {
			b, _, err := st.Begin(t.Context(), store.TxOptions{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			v, err := running.TryMark(t.Context(), b.Tx(store.All), m)
			if commit {
				b.Commit(t.Context(), store.Ending{})
			} else {
				b.Rollback(t.Context())
			}
			return v, err
		}
		for _, step := range []struct {
			what   string
			m      *semel.Message
			commit bool
			want   store.Verdict
		}{
			{"rolled back", message("1", `{}`), false, store.Verdict{Kind: store.Fresh}},
			{"committed", message("1", `{}`), true, store.Verdict{Kind: store.Fresh}},
			{"a copy", message("1", ` {} `), true, store.Verdict{Kind: store.Seen, Was: store.Applied}},
			{"a conflict", message("1", `{"n":1}`), true, store.Verdict{Kind: store.Conflict}},
		} {
			if v, err := try(step.m, step.commit); err != nil || v != step.want {
				t.Errorf("%s: %+v, %v", step.what, v, err)
			}
		}
		var identity *identity.Error
		if _, err := try(message("", `{}`), true); !errors.As(err, &identity) || identity.Reason != semel.ReasonNoIdentity {
			t.Errorf("without an id: %v", err)
		}
		if counts := runs(t, st, add, config(newListSource(message("1", `{}`)))); counts.Duplicates != 1 {
			t.Errorf("a run afterwards: %+v", counts)
		}
		if _, err := mustNew(t, store.TxStore[*memstore.Tx](bare{st}), add, unparked(nil)).TryMark(t.Context(), nil, message("1", `{}`)); !errors.Is(err, semel.ErrUnsupported) {
			t.Errorf("on a store without CallerTx: %v", err)
		}
	})
}

// bare is a store that implements only store.TxStore.
type bare struct{ store.TxStore[*memstore.Tx] }
