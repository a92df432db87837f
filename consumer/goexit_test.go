package consumer_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// exiting is a user-defined identity and fingerprinter. For messages with a certain header id, exiting ends its
// goroutine (runtime.Goexit).
type exiting struct{ identity, print bool }

func (exiting) Validate() error { return nil }

func (e exiting) Identify(m *semel.Message) (source, id string, err error) {
	name, _ := m.Headers.Get("id")
	if e.identity && strings.HasPrefix(string(name), "exit") {
		runtime.Goexit()
	}
	return "", string(name), nil
}

func (e exiting) Fingerprint(m *semel.Message) (semel.Fingerprint, error) {
	name, _ := m.Headers.Get("id")
	if e.print && strings.HasPrefix(string(name), "exit") {
		runtime.Goexit()
	}
	return semel.Fingerprint{}, nil
}

// exitingFitter is a store whose method FitIdentity ends the calling goroutine for certain ids.
type exitingFitter struct{ *memstore.Store }

func (f exitingFitter) Limits() store.Limits { return store.Limits{FitIdentity: f.fit} }

func (exitingFitter) fit(_, id string) (string, error) {
	if strings.HasPrefix(id, "exit") {
		runtime.Goexit()
	}
	return id, nil
}

// exitsAmong returns n messages. For every fourth message, the function that reads the message ends its goroutine.
func exitsAmong(n, size int) (all []*semel.Message) {
	for i := range n {
		name := "ok"
		if i%4 == 1 {
			name = "exit"
		}
		all = append(all, message(fmt.Sprint(name, " ", i), `"`+strings.Repeat("x", size)+`"`))
	}
	return all
}

// exitsAside runs a consumer with messages from exitsAmong, of which every fourth makes a user-defined function call
// runtime.Goexit. exitsAside checks how the messages end.
func exitsAside(t *testing.T, own exiting, size int, reason semel.Reason, says string) {
	const n = 16
	store := memstore.New()
	c := config(newListSource(exitsAmong(n, size)...))
	c.Identity, c.Fingerprint, c.Workers = own, own, 1
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	var order, want []string
	running := mustNew(t, store, func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
		order = append(order, m.Identity.ID)
		return nil
	}, c)
	if err := running.Run(ctx); err != nil || ctx.Err() != nil {
		t.Fatalf("%v, %v: the consumer hangs", err, ctx.Err())
	}
	for i := range n {
		if i%4 != 1 {
			want = append(want, fmt.Sprint("ok ", i))
		}
	}
	if counts := running.Counts(); counts.Applied != n*3/4 || counts.Parked != n/4 || !slices.Equal(order, want) {
		t.Errorf("%+v in the order %v", counts, order)
	}
	for _, r := range rows(t, store) {
		if r.Reason != reason || !strings.Contains(r.LastError, says) {
			t.Errorf("set aside as %q: %s", r.Reason, r.LastError)
		}
	}
}

func TestAUsersFunctionThatEndsItsGoroutine(t *testing.T) {
	t.Run("trap_T90_by_Goexit_sets_its_message_aside_and_the_others_go_on_in_order", func(t *testing.T) {
		for readers, size := range map[string]int{"one_reader": 1, "several_readers": 100 << 10} {
			bubble(t, "in_an_identity_with_"+readers, func(t *testing.T) {
				exitsAside(t, exiting{identity: true}, size, semel.ReasonBadIdentity, "the identity, or what the store makes of it, ended its goroutine (runtime.Goexit)")
			})
			bubble(t, "in_a_fingerprinter_with_"+readers, func(t *testing.T) {
				exitsAside(t, exiting{print: true}, size, semel.ReasonMalformed, "the fingerprinter ended its goroutine (runtime.Goexit)")
			})
		}
	})
	bubble(t, "trap_T90_by_Goexit_between_Fetch_and_reading_loses_no_delivery", func(t *testing.T) {
		source, exits := newListSource(numbered("m", 10)...), true
		plan := faults.Plan{At: func(p faults.Point, _ int) {
			if p == faults.AfterFetch && exits {
				exits = false
				runtime.Goexit()
			}
		}}
		if counts := runs(t, memstore.New(), add, config(source), plan); counts.Applied != 10 || len(source.settled) != 10 || exits {
			t.Errorf("%+v, %d settled, exits still to come: %t", counts, len(source.settled), exits)
		}
	})
	for readers, size := range map[string]int{"one_reader": 1, "several_readers": 100 << 10} {
		bubble(t, "trap_T90_by_Goexit_in_what_the_store_makes_of_an_id_sets_its_message_aside_with_"+readers, func(t *testing.T) {
			source := newListSource(exitsAmong(16, size)...)
			counts := runs(t, exitingFitter{memstore.New()}, add, config(source))
			if counts.Applied != 12 || counts.Parked != 4 || len(source.settled) != 16 {
				t.Errorf("%+v, %d settled", counts, len(source.settled))
			}
		})
	}
	bubble(t, "trap_T90_by_Goexit_in_Process_is_the_messages_failure_and_the_next_call_is_answered", func(t *testing.T) {
		c := config(nil)
		c.Identity = exiting{identity: true}
		running := mustNew(t, memstore.New(), add, c)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for _, m := range []*semel.Message{message("exit", `{}`), message("ok", `{}`)} {
			d, err := running.Process(ctx, m)
			if id := string(m.Headers[0].Value); err != nil || d.Kind != semel.Ack || (d.Reason == semel.ReasonBadIdentity) != (id == "exit") {
				t.Errorf("%s: %+v, %v", id, d, err)
			}
		}
		if err := running.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Run("trap_T90_by_Goexit_in_TryMark_ends_the_callers_goroutine_and_locks_nothing", func(t *testing.T) {
		store := memstore.New()
		c := config(nil)
		c.Identity = exiting{identity: true}
		running := mustNew(t, store, add, c)
		mark := func(id string) (returned bool) {
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = running.TryMark(t.Context(), nil, message(id, `{}`))
				returned = true
			}()
			<-done
			return returned
		}
		for range 2 { // the second message would wait for a lock that the first one holds
			if mark("exit") {
				t.Error("it returned")
			}
		}
		if _, err := running.Process(t.Context(), message("ok", `{}`)); err != nil {
			t.Error(err)
		}
		if err := running.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
