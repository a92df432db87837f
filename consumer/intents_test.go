package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/semelheader"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// sender returns a consumer that sends intents. The consumer appends the sent intents to sent.
func sender(t *testing.T, store *memstore.Store, name string, sent *[]*semel.Message, change func(*consumer.Config)) *consumer.Consumer[consumer.Call] {
	t.Helper()
	c := config(nil)
	c.Name, c.Strategy, c.Identity = name, consumer.StrategyInbox, identity.CloudEvents()
	if change != nil {
		change(&c)
	}
	var mu sync.Mutex // several workers send at once
	return mustNewLeased(t, store, func(_ context.Context, _ consumer.Call, m *semel.Message) error {
		mu.Lock()
		defer mu.Unlock()
		*sent = append(*sent, m)
		return nil
	}, c)
}

func intentsOf(t *testing.T, store *memstore.Store) *consumer.Intents[*memstore.Tx] {
	t.Helper()
	w, err := consumer.NewIntents(store)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// mail returns the intent that a message causes: a mail.
func mail(m *semel.Message) semel.Intent {
	return semel.Intent{To: "mailer", Purpose: "confirmation", Recipient: "ann", Type: "mail", Body: []byte("paid " + m.Identity.ID)}
}

// inTransaction runs write in a transaction of the caller.
func inTransaction(t *testing.T, st *memstore.Store, write func(tx *memstore.Tx) error) error {
	t.Helper()
	b, _, err := st.Begin(t.Context(), store.TxOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(b.Tx(store.All)); err != nil {
		b.Rollback(t.Context())
		return err
	}
	if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
		t.Fatal(r)
	}
	return nil
}

func TestIntents(t *testing.T) {
	bubble(t, "law_1_E1_an_intent_is_sent_once_whatever_becomes_of_the_handlers_runs", func(t *testing.T) {
		st := memstore.New()
		w := intentsOf(t, st)
		runs := 0
		handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if err := w.Write(ctx, tx, m, mail(m)); err != nil {
				return err
			}
			if runs++; runs%3 == 1 {
				return errors.New("after the intent was written")
			}
			return tx.Add(m.Identity.ID, 1)
		}
		messages := append(numbered("m", 20), numbered("m", 20)...)
		run := start(t, mustNew(t, st, handle, config(newListSource(messages...))))
		if err := run.wait(); err != nil {
			t.Fatal(err)
		}
		var sent []*semel.Message
		if err := sender(t, st, "mailer", &sent, nil).Work(t.Context()); err != nil {
			t.Fatal(err)
		}
		keys := map[string]bool{}
		for _, m := range sent {
			keys[m.IntentKey("send")] = true
			if cause, _ := m.Headers.Get(semelheader.Causation); string(m.Body) != "paid "+string(cause) || m.Type() != "mail" || string(m.Key) != "ann" {
				t.Errorf("%+v", m)
			}
		}
		if len(sent) != 20 || len(keys) != 20 {
			t.Errorf("%d intents were sent under %d keys", len(sent), len(keys))
		}
	})
	bubble(t, "C14_outputs_are_the_same_rows_with_another_sender", func(t *testing.T) {
		st := memstore.New()
		w := intentsOf(t, st)
		cause := semel.NewMessage(semel.Key{Consumer: "billing", Source: "shop", ID: "1"}, nil)
		cause.Headers = semel.Headers{{Name: "correlation-id", Value: []byte("began")}}
		output := semel.Intent{To: "outbox", Purpose: "paid", Type: "invoice.paid", Body: []byte("{}"), Headers: semel.Headers{{Name: "x-more", Value: []byte("1")}, {Name: "Semel-Causation-Id", Value: []byte("forged")}}}
		if err := inTransaction(t, st, func(tx *memstore.Tx) error { return w.Write(t.Context(), tx, cause, output, mail(cause)) }); err != nil {
			t.Fatal(err)
		}
		var sent []*semel.Message
		if err := sender(t, st, "outbox", &sent, nil).Work(t.Context()); err != nil || len(sent) != 1 {
			t.Fatal(err, len(sent))
		}
		m := sent[0]
		correlation, _ := m.Headers.Get(semelheader.Correlation)
		cause1, _ := m.Headers.Get(semelheader.Causation)
		more, _ := m.Headers.Get("x-more")
		if m.ID() != cause.OutputID("paid", "") || m.Identity.ID != m.ID() || m.Source() != "billing" || string(correlation)+string(cause1)+string(more) != "began11" {
			t.Errorf("%+v", m)
		}
	})
	bubble(t, "law_7_the_same_intent_with_another_content_fails_its_message", func(t *testing.T) {
		st := memstore.New()
		w := intentsOf(t, st)
		cause := semel.NewMessage(semel.Key{Consumer: "billing", ID: "1"}, nil)
		for i, want := range []error{nil, nil, semel.ErrIntent} {
			err := inTransaction(t, st, func(tx *memstore.Tx) error {
				n := mail(cause)
				n.Body = fmt.Append(nil, i/2)
				return w.Write(t.Context(), tx, cause, n)
			})
			var of *semel.HandlerError
			if !errors.Is(err, want) || want != nil && (!errors.As(err, &of) || of.Decision != semel.DecidePermanent) {
				t.Errorf("write %d: %v", i, err)
			}
		}
		if all := rows(t, st); len(all) != 1 {
			t.Errorf("%+v", all)
		}
	})
	bubble(t, "E1_C14_what_tells_intents_apart_and_what_no_header_replaces", func(t *testing.T) {
		st := memstore.New()
		w := intentsOf(t, st)
		cause := semel.NewMessage(semel.Key{Consumer: "bill/ing", Source: "shop", ID: "m0"}, nil)
		write := func(all ...semel.Intent) error {
			return inTransaction(t, st, func(tx *memstore.Tx) error { return w.Write(t.Context(), tx, cause, all...) })
		}
		ann, bob := mail(cause), mail(cause)
		bob.Recipient = "bob"
		for i := range cause.Causation() {
			ann.Headers = append(ann.Headers, semel.Header{Name: cause.Causation()[i].Name, Value: []byte("forged")})
		}
		ann.Headers = append(ann.Headers, semel.Header{Name: "tenant", Value: []byte("1")})
		if err := write(ann, bob); err != nil {
			t.Fatal(err)
		}
		var sent []*semel.Message
		if err := sender(t, st, "mailer", &sent, nil).Work(t.Context()); err != nil || len(sent) != 2 {
			t.Fatal(err, len(sent))
		}
		for _, m := range sent {
			if m.Identity.Source != "bill%2Fing" {
				t.Errorf("its source is %q", m.Identity.Source)
			}
			for _, h := range m.Headers {
				if string(h.Value) == "forged" {
					t.Errorf("the header %s is not the cause's", h.Name)
				}
			}
		}
		other := ann
		other.Headers = append(semel.Headers{}, ann.Headers...)
		other.Headers[len(other.Headers)-1].Value = []byte("2")
		if err := write(other); !errors.Is(err, semel.ErrIntent) {
			t.Errorf("an intent with another header counts as equal: %v", err)
		}
	})
	bubble(t, "E4_what_is_written_suppressed_is_not_sent", func(t *testing.T) {
		st := memstore.New()
		w := intentsOf(t, st)
		cause := semel.NewMessage(semel.Key{Consumer: "billing", ID: "1"}, nil)
		if err := inTransaction(t, st, func(tx *memstore.Tx) error { return w.Suppressed().Write(t.Context(), tx, cause, mail(cause)) }); err != nil {
			t.Fatal(err)
		}
		var sent []*semel.Message
		if err := sender(t, st, "mailer", &sent, nil).Work(t.Context()); err != nil || len(sent) != 0 {
			t.Errorf("%v, %d sent", err, len(sent))
		}
		r := rows(t, st)[0]
		if r.State != store.StateParked || r.Reason != reasonname.Suppressed {
			t.Errorf("%+v", r)
		}
		if err := errors.Join(st.Requeue(t.Context(), store.Act{Verb: "send", Who: "me", Why: "now"}, r.Seen())...); err != nil {
			t.Fatal(err)
		}
		if err := sender(t, st, "mailer", &sent, nil).Work(t.Context()); err != nil || len(sent) != 1 {
			t.Errorf("%v, %d sent", err, len(sent))
		}
	})
	t.Run("an_intent_without_what_it_needs_is_refused_before_anything_is_written", func(t *testing.T) {
		st := memstore.New()
		w := intentsOf(t, st)
		cause := semel.NewMessage(semel.Key{Consumer: "billing", ID: "1"}, nil)
		for what, one := range map[string]struct {
			cause *semel.Message
			n     semel.Intent
		}{
			"To is empty":      {cause, semel.Intent{Purpose: "a"}},
			"Purpose is empty": {cause, semel.Intent{To: "mailer"}},
			"ID is empty":      {nil, semel.Intent{To: "mailer", Purpose: "a"}},
			"no Identity":      {&semel.Message{}, semel.Intent{To: "mailer", Purpose: "a"}},
			"4097 bytes":       {cause, semel.Intent{To: "mailer", ID: strings.Repeat("i", 4097)}},
		} {
			err := inTransaction(t, st, func(tx *memstore.Tx) error { return w.Write(t.Context(), tx, one.cause, mail(cause), one.n) })
			if err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := inTransaction(t, st, func(tx *memstore.Tx) error {
			return w.Write(t.Context(), tx, nil, semel.Intent{To: "mailer", ID: "order-17", Key: "17"})
		}); err != nil {
			t.Error(err)
		}
		if all := rows(t, st); len(all) != 1 || all[0].Key != (semel.Key{Consumer: "mailer", Source: "intents", ID: "order-17"}) || all[0].Message.IntentKey("send") != "17" {
			t.Errorf("%+v", all)
		}
		if _, err := consumer.NewIntents(plain(st)); !errors.Is(err, semel.ErrUnsupported) {
			t.Error(err)
		}
	})
}

func TestIntentsThroughCrashes(t *testing.T) {
	bubble(t, "law_1_wherever_the_process_dies_an_intent_stands_exactly_where_its_effect_does", func(t *testing.T) {
		deaths := 0
		for _, point := range faults.Points() {
			var dead atomic.Bool
			store := memstore.New(memstore.Fail(func(string) error {
				if dead.Load() {
					return errors.New("the process is dead")
				}
				return nil
			}))
			w := intentsOf(t, store)
			handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				return errors.Join(w.Write(ctx, tx, m, mail(m)), add(ctx, tx, m))
			}
			messages := numbered("m", 20)
			died, left := crash(t, store, handle, &dead, messages, point, 2)
			if died {
				deaths++
			}
			written := map[string]int{}
			for range 2 {
				for _, r := range rows(t, store) {
					written[string(r.Message.Body)]++
				}
				for _, m := range messages {
					id, _ := m.Headers.Get("id")
					if n := written["paid "+string(id)]; fmt.Sprint(n) != effect(t, store, string(id)) && (n != 0 || effect(t, store, string(id)) != "") {
						t.Errorf("%s: message %s has %d intents and the effect %q", point, id, n, effect(t, store, string(id)))
					}
				}
				clear(written)
				runs(t, store, handle, config(newListSource(left...)))
			}
			if all := rows(t, store); len(all) != len(messages) {
				t.Errorf("%s: %d intents of %d messages", point, len(all), len(messages))
			}
		}
		if deaths == 0 {
			t.Error("nothing died")
		}
	})
}
