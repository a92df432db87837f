package handlertest

import (
	"context"
	"crypto/rand"
	"errors"
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

// counted returns a test world whose handler increments a counter for each message, and a pointer to the number of runs
// of that handler.
func counted(t *testing.T) (w *world[*memstore.Tx], runs *int) {
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
			w, runs := counted(t)
			w.plan.set(func(p *plan) { p.crash = c.at })
			d, err := w.one(0)
			if acked := err == nil && d.Kind == semel.Ack; acked || !w.plan.crashed() || *runs != c.runs || w.effect() != c.effect {
				t.Errorf("settled %+v, %v; crashed %t, %d runs, effect %q", d, err, w.plan.crashed(), *runs, w.effect())
			}
			w.boot()
			if err := w.applies(0, acks()...); err != nil || *runs != c.again || w.effect() != "1" {
				t.Errorf("after the restart: %v, %d runs, effect %q; want %d and 1", err, *runs, w.effect(), c.again)
			}
		})
	}
}

func TestALostReplyIsFoundOutWithoutARestart(t *testing.T) {
	w, runs := counted(t)
	w.plan.set(func(p *plan) { p.crash, p.recovers = atReply, true })
	if err := w.applies(0, acks()...); err != nil || *runs != 1 || w.effect() != "1" || w.plan.crash != nowhere {
		t.Errorf("%v, %d runs, effect %q; want one run", err, *runs, w.effect())
	}
}

func TestEachDisturbanceRunsTheHandler(t *testing.T) {
	// The expected number of runs of the handler for two messages, in all test worlds of a subtest.
	want := map[string]int{
		"second attempt": 2, "failed transaction": 2, "rollback and second run": 4, "rerun of a success": 4, "duplicate after success": 2,
		"concurrent duplicates": 2, "COMMIT reply lost, no crash": 2, "poison message": 3, "conflict": 2, "dead-letter retry": 4,
		"crash before the transaction begins": 2, "crash after the mark": 2, "crash before the handler": 2, "crash after the handler": 4,
		"crash before COMMIT": 4, "crash after COMMIT, with the reply lost": 2, "crash after COMMIT, before the ack": 2,
		"connection cut before COMMIT": 4,
	}
	// The maximum number of additional runs that depend on timing: the poison message makes its batch fail, and the
	// handler of the other message runs again only if the two messages were in one batch.
	further := map[string]int{"poison message": 1}
	runs := 0
	s := &session[*memstore.Tx]{start: func(T) Handler[*memstore.Tx] {
		w, own := counted(t)
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
		} else if n, known := want[c.name]; known && (runs < n || runs > n+further[c.name]) {
			t.Errorf("%s: the handler ran %d times, want %d to %d", c.name, runs, n, n+further[c.name])
		}
		delete(want, c.name)
	}
	if len(want) > 0 {
		t.Errorf("there are no such subtests: %v", want)
	}
}

// The type plain is a store without an inbox.
type plain struct{ store.TxStore[*memstore.Tx] }

func TestAStoreWithoutAnInboxWillDo(t *testing.T) {
	applies := 0
	s := &session[*memstore.Tx]{start: func(T) Handler[*memstore.Tx] {
		w, _ := counted(t)
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
	w, _ := counted(t)
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
		w, _ := counted(t)
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
