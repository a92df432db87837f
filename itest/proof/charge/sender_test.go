//go:build unix

package charge

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/provider"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// directTransport is an http.RoundTripper that calls a provider in the same process.
type directTransport struct{ *provider.Provider }

// RoundTrip implements http.RoundTripper.
func (d directTransport) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	defer func() {
		if recover() != nil { // a panic means that the provider cuts the connection
			answer, err = nil, io.ErrUnexpectedEOF
		}
	}()
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w.Result(), nil
}

// runSender makes a sender charge payments in virtual time until all remaining messages are parked. The
// results are the history of each payment from the provider's log, and the parked rows.
func runSender(t *testing.T, plant string) (all map[string]*history, parked []store.StoredRow) {
	t.Helper()
	p := Quick()
	p.Plant, p.Payments = plant, 300
	r := newRun(p, proof.InTest(t), nil)
	o := r.providerOrder()
	o.Fates.Stubborn = 100_000
	synctest.Test(t, func(t *testing.T) {
		here := must.Get(provider.Open(o, nil))(t)
		s := &sender{Client: provider.Client{URL: "http://provider", HTTP: &http.Client{Transport: directTransport{here}, Timeout: p.Timeout * 3 / 4}}, traps: &traps{}, plant: plant}
		st := memstore.New()
		receive(t, st, p.Payments)
		policy := p.senderConfig(s)
		policy.Logger = slog.New(slog.DiscardHandler)
		c := must.Get(consumer.NewLeased(st, s.charge, policy))(t)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute) // ten minutes of the bubble's virtual time
		defer stop()
		if err := c.Run(ctx); err != nil {
			t.Error(err)
		}
		parked = must.Get(st.Rows(t.Context(), store.RowFilter{Consumer: charges, States: []store.RowState{store.StateParked}}))(t)
		if err := here.Close(); err != nil {
			t.Error(err)
		}
	})
	all, _, err := readHistories(filepath.Join(r.Folder, "provider.log"))
	must.OK(t, err)
	return all, parked
}

// receive writes the intents of a number of payments; the parameter count is this number.
func receive(t *testing.T, st *memstore.Store, count int) {
	t.Helper()
	scope := must.Get(st.Scope(t.Context(), charges, "shop", 0))(t)
	marks, rows := make([]store.Mark, count), make([]store.Row, count)
	for i := range count {
		body := must.Get(json.Marshal(provider.Payment{Reference: reference(i), Card: "4242", Cents: 100}))(t)
		marks[i] = store.Mark{Scope: scope, ID: []byte(reference(i)), As: store.Waiting}
		m := semel.NewMessage(semel.Key{Consumer: charges, Source: "shop", ID: reference(i)}, body)
		rows[i] = store.Row{Mark: i, State: store.StateReceived, Message: m}
	}
	b, _, err := st.Begin(t.Context(), store.TxOptions{}, marks)
	must.OK(t, err)
	if result := b.Commit(t.Context(), store.Ending{Rows: rows}); result.Outcome != store.Committed {
		t.Fatal(result)
	}
}

func TestEachPaymentIsChargedOnceWhateverBecomesOfItsCalls(t *testing.T) {
	all, parked := runSender(t, "")
	l := Ledger{decided: map[string]bool{}}
	for i := range parked {
		if parked[i].Reason != semel.ReasonOutcomeUnknown {
			t.Errorf("%s is parked as %q", parked[i].Key.ID, parked[i].Reason)
		}
		l.decided[parked[i].Key.ID] = true
	}
	once := func(t *testing.T, of func(*history) bool) {
		t.Helper()
		met := 0
		for reference, h := range all {
			if !of(h) {
				continue
			}
			met++
			if h.charges > 1 || h.charges == 0 && !l.decided[reference] {
				t.Errorf("%s is charged %d times: %+v", reference, h.charges, *h)
			}
		}
		if met == 0 {
			t.Error("no payment has an unknown outcome")
		}
	}
	t.Run("all_of_them", func(t *testing.T) { once(t, func(*history) bool { return true }) })
	t.Run("trap_T76_a_call_that_timed_out_is_unknown_and_comes_again_under_its_key_only", func(t *testing.T) {
		once(t, func(h *history) bool { return h.silent })
	})
	t.Run("trap_T77_a_key_that_the_provider_forgot_is_asked_about_and_not_used_again", func(t *testing.T) {
		once(t, func(h *history) bool { return h.asked })
	})
	l.resolve(all)
	t.Logf("%d unknown: %d by key, %d by asking, %d by a person", l.Unknown, l.ByKey, l.ByAsking, l.ByPerson)
	if len(all) != 300 || l.Unresolved != 0 || l.ByKey == 0 || l.ByAsking == 0 || l.ByPerson == 0 {
		t.Errorf("%d payments, %+v", len(all), l)
	}
}

func TestPlantedFaultsOfSendersAreFound(t *testing.T) {
	for plant, wrong := range map[string]func(charges int, parked bool) bool{
		"new-key":      func(charges int, _ bool) bool { return charges > 1 },
		"forgotten":    func(charges int, _ bool) bool { return charges > 1 },
		"settle-first": func(charges int, parked bool) bool { return charges == 0 && !parked },
	} {
		t.Run(plant, func(t *testing.T) {
			all, parked := runSender(t, plant)
			waits, found := map[string]bool{}, 0
			for i := range parked {
				waits[parked[i].Key.ID] = true
			}
			for reference, h := range all {
				if wrong(h.charges, waits[reference]) {
					found++
				}
			}
			if found == 0 {
				t.Error("the planted fault was not detected")
			}
		})
	}
}
