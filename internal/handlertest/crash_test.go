package handlertest

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// event returns a message with the headers of a CloudEvent.
func event(id string) *semel.Message {
	return &semel.Message{Headers: semel.Headers{
		{Name: "ce-specversion", Value: []byte("1.0")}, {Name: "ce-id", Value: []byte(id)},
		{Name: "ce-source", Value: []byte("handlertest")}, {Name: "ce-type", Value: []byte("handlertest")},
	}, Body: []byte("{}")}
}

// newCountingWorld returns a test world whose handler increments a counter for each message, and a pointer to the
// number of runs of that handler.
func newCountingWorld(t *testing.T) (w *world[*memstore.Tx], runs *int) {
	t.Helper()
	runs = new(int)
	w = newWorld(t, func(T) Handler[*memstore.Tx] {
		st := memstore.New()
		return Handler[*memstore.Tx]{
			Store:    st,
			Handle:   func(_ context.Context, tx *memstore.Tx, _ *semel.Message) error { *runs++; return tx.Add("sum", 1) },
			Messages: []*semel.Message{event("a"), event("b")},
			Effect:   func(context.Context) (string, error) { return string(st.Get("sum")), nil },
		}
	}, rand.Text())
	return w, runs
}

func TestAProcessCrashesAtEachPoint(t *testing.T) {
	for _, c := range []struct {
		at          point
		runs, again int // runs of the handler before the crash, and after the restart
		effect      string
	}{
		{atBegin, 0, 1, ""}, {atMark, 0, 1, ""}, {beforeHandle, 0, 1, ""}, {afterHandle, 1, 2, ""},
		{atCommit, 1, 2, ""}, {atReply, 1, 1, "1"},
	} {
		t.Run(string(c.at), func(t *testing.T) {
			w, runs := newCountingWorld(t)
			w.plan.set(func(p *plan) { p.crash = c.at })
			d, err := w.deliverOne(0)
			if acked := err == nil && d.Kind == semel.Ack; acked || !w.plan.crashed() || *runs != c.runs || w.effect() != c.effect {
				t.Errorf("settled %+v, %v; crashed %t, %d runs, effect %q", d, err, w.plan.crashed(), *runs, w.effect())
			}
			w.boot()
			if err := w.deliverAndCheck(0, acks()...); err != nil || *runs != c.again || w.effect() != "1" {
				t.Errorf("after the restart: %v, %d runs, effect %q; want %d and 1", err, *runs, w.effect(), c.again)
			}
		})
	}
}

func TestALostReplyIsFoundOutWithoutARestart(t *testing.T) {
	w, runs := newCountingWorld(t)
	w.plan.set(func(p *plan) { p.crash, p.recovers = atReply, true })
	if err := w.deliverAndCheck(0, acks()...); err != nil || *runs != 1 || w.effect() != "1" || w.plan.crash != nowhere {
		t.Errorf("%v, %d runs, effect %q; want one run", err, *runs, w.effect())
	}
}

func TestEachDisturbanceRunsTheHandler(t *testing.T) {
	// The expected number of runs of the handler for two messages, in all test worlds of a subtest.
	want := map[string]int{
		"second attempt": 2, "failed transaction": 2, "rollback and second run": 4, "rerun of a success": 4, "duplicate after success": 2,
		"concurrent duplicates": 2, "COMMIT reply lost, no crash": 2, "poison message": 4, "conflict": 2, "dead-letter retry": 4,
		"crash before the transaction begins": 2, "crash after the mark": 2, "crash before the handler": 2, "crash after the handler": 4,
		"crash before COMMIT": 4, "crash after COMMIT, with the reply lost": 2, "crash after COMMIT, before the ack": 2,
		"connection cut before COMMIT": 4,
	}
	runs := 0
	s := &session[*memstore.Tx]{start: func(T) Handler[*memstore.Tx] {
		w, own := newCountingWorld(t)
		h := w.Handler
		handle := h.Handle
		h.Handle = func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			before := *own
			err := handle(ctx, tx, m)
			runs += *own - before
			return err
		}
		return h
	}}
	for _, c := range cases[*memstore.Tx]() {
		runs = 0
		if err := s.run(t, c); err != nil {
			t.Logf("%s: %v", c.name, err)
		} else if n, known := want[c.name]; known && runs != n {
			t.Errorf("%s: the handler ran %d times, want %d", c.name, runs, n)
		}
		delete(want, c.name)
	}
	if len(want) > 0 {
		t.Errorf("there are no such subtests: %v", want)
	}
}

func TestAPoisonMessageIsFoundInTablesThatEachWorldEmpties(t *testing.T) {
	outside := 0 // what the handler writes outside of its transaction
	s := &session[*memstore.Tx]{start: func(T) Handler[*memstore.Tx] {
		w, _ := newCountingWorld(t)
		h := w.Handler
		outside = 0
		h.Handle = func(context.Context, *memstore.Tx, *semel.Message) error { outside++; return nil }
		h.Effect = func(context.Context) (string, error) { return strconv.Itoa(outside), nil }
		return h
	}}
	for _, c := range cases[*memstore.Tx]() {
		if c.group != Poison {
			continue
		}
		if err := s.run(t, c); err == nil || !strings.Contains(err.Error(), "the effects are not those of the other messages alone") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAHandlerThatDoesNotUseItsTransactionIsNotBlamedForItsErrors(t *testing.T) {
	for says, handle := range map[string]func(tx *memstore.Tx, outside *int) error{
		"the effect is elsewhere":              func(_ *memstore.Tx, outside *int) error { *outside++; return nil },
		"return the errors of the transaction": func(tx *memstore.Tx, _ *int) error { _ = tx.Add("sum", 1); return nil },
	} {
		s := &session[*memstore.Tx]{start: func(T) Handler[*memstore.Tx] {
			w, _ := newCountingWorld(t)
			h, outside := w.Handler, 0
			inTables := h.Effect
			h.Handle = func(_ context.Context, tx *memstore.Tx, _ *semel.Message) error { return handle(tx, &outside) }
			h.Effect = func(ctx context.Context) (string, error) {
				text, err := inTables(ctx)
				return text + " " + strconv.Itoa(outside), err
			}
			return h
		}}
		for _, c := range cases[*memstore.Tx]() {
			if c.name != "failed transaction" {
				continue
			}
			if err := s.run(t, c); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("want %q: %v", says, err)
			}
		}
	}
}

// plain is a store without an inbox.
type plain struct{ store.TxStore[*memstore.Tx] }

func TestAStoreWithoutAnInboxWillDo(t *testing.T) {
	applies := 0
	s := &session[*memstore.Tx]{start: func(T) Handler[*memstore.Tx] {
		w, _ := newCountingWorld(t)
		h := w.Handler
		h.Store = plain{h.Store}
		return h
	}}
	for _, c := range cases[*memstore.Tx]() {
		var skip *NotRun
		switch err := s.run(t, c); {
		case err == nil:
			applies++
		case !errors.As(err, &skip):
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if applies < 15 {
		t.Errorf("only %d subtests ran", applies)
	}
}

func TestAnIncompleteHandlerIsRefused(t *testing.T) {
	w, _ := newCountingWorld(t)
	for missing, change := range map[string]func(*Handler[*memstore.Tx]){
		"Store": func(h *Handler[*memstore.Tx]) { h.Store = nil }, "Handle": func(h *Handler[*memstore.Tx]) { h.Handle = nil },
		"Effect": func(h *Handler[*memstore.Tx]) { h.Effect = nil }, "Messages": func(h *Handler[*memstore.Tx]) { h.Messages = nil },
	} {
		h := w.Handler
		change(&h)
		if err := h.check(); err == nil || !strings.Contains(err.Error(), "Handler."+missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

func TestAMemoryStoreIsRefusedForKilledProcesses(t *testing.T) {
	s := &session[*memstore.Tx]{start: func(T) Handler[*memstore.Tx] {
		w, _ := newCountingWorld(t)
		h := w.Handler
		h.Process = &Process{Database: "none"}
		return h
	}}
	refused := 0
	for _, c := range cases[*memstore.Tx]() {
		if err := s.run(t, c); err != nil && strings.Contains(err.Error(), "the memory store ends with its process") {
			refused++
		}
	}
	if refused != 2 {
		t.Errorf("%d subtests refuse the memory store, want 2", refused)
	}
}

func TestATestOutsideOfPackageTestingEnds(t *testing.T) {
	var order []string
	err := Alone(t.Context(), "alone", func(t T) error {
		t.Cleanup(func() { order = append(order, "first") })
		t.Cleanup(func() { order = append(order, "second") })
		t.Fatalf("%s has ended", t.Name())
		return nil
	})
	if err == nil || err.Error() != "alone has ended" || strings.Join(order, " ") != "second first" {
		t.Errorf("%v, cleaned up %v", err, order)
	}
}
