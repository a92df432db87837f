package consumer_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// minted returns the messages of a producer that sends each of n contents several times with new ids. Each message is
// delivered twice, as a broker may do.
func minted(n int) (all []*semel.Message) {
	for range 2 {
		for payment := range 4 {
			for i := range n {
				all = append(all, message(fmt.Sprint(payment, "-", i), fmt.Sprintf(`{"payment": %d, "secret": "4711"}`, payment)))
			}
		}
	}
	return all
}

func setAside(context.Context, *memstore.Tx, *semel.Message) error { return semel.Park("look") }

func TestOneContentUnderSeveralIDs(t *testing.T) {
	runsOver := func(t *testing.T, by identity.Fingerprinter) (semel.Counts, *memstore.Store, *witness, string) {
		var log bytes.Buffer
		store, seen := memstore.New(), &witness{}
		c := config(newListSource(minted(5)...))
		c.Fingerprint, c.Observers, c.Logger = by, []semel.Observer{seen}, slog.New(slog.NewTextHandler(&log, nil))
		return runs(t, store, add, c), store, seen, log.String()
	}
	bubble(t, "A8_is_counted_and_told_and_decides_nothing", func(t *testing.T) {
		plain, _, none, quiet := runsOver(t, identity.FingerprintNone())
		if plain.SameContent != 0 || len(none.eventsOf(eventkind.SameContent)) != 0 || strings.Contains(quiet, "same content") {
			t.Errorf("without fingerprints %+v\n%s", plain, quiet)
		}
		counts, store, seen, log := runsOver(t, identity.FingerprintBody())
		if want := (semel.Counts{Deliveries: 40, Applied: 20, Duplicates: 20, SameContent: 16}); counts != want {
			t.Errorf("%+v, not %+v", counts, want)
		}
		if counts.SameContent = 0; counts != plain {
			t.Errorf("with fingerprints %+v, without %+v", counts, plain)
		}
		for _, m := range minted(5) {
			id, _ := m.Headers.Get("id")
			if effect(t, store, string(id)) != "1" {
				t.Errorf("the effect of %s happened %q times", id, effect(t, store, string(id)))
			}
		}
		told := seen.eventsOf(eventkind.SameContent)
		if len(told) != 16 || told[0].Key.ID != "0-1" || told[0].Consumer != "billing" {
			t.Errorf("%d events, first %+v", len(told), told)
		}
		if n := strings.Count(log, `msg="same content under another id"`); n != 2 || !strings.Contains(log, "id=0-1") || !strings.Contains(log, "so_far=10") || strings.Contains(log, "4711") {
			t.Errorf("%d lines:\n%s", n, log)
		}
	})
	bubble(t, "A8_what_was_received_is_looked_at_when_it_is_applied", func(t *testing.T) {
		store := memstore.New()
		c := withoutSource(config(nil))
		c.Source, c.AckOnReceipt = newListSource(minted(3)...), true
		if counts := runs(t, store, add, c); counts.Received != 12 || counts.Inbox.Applied != 12 || counts.SameContent != 8 {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "A8_what_has_no_effect_has_doubled_nothing", func(t *testing.T) {
		c := config(newListSource(message("1", `{}`), message("2", `{}`), message("3", `{}`)))
		if counts := runs(t, memstore.New(), setAside, c); counts.Parked != 3 || counts.SameContent != 0 {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "A8_what_Process_applies_is_looked_at", func(t *testing.T) {
		running := mustNew(t, memstore.New(), add, config(nil))
		for i, want := range []int64{0, 1} {
			d, err := running.Process(t.Context(), message(fmt.Sprint(i), `{}`))
			if err != nil || d.Kind != semel.Ack || d.Ending != source.EndApplied || running.Counts().SameContent != want {
				t.Errorf("%+v, %v, %+v", d, err, running.Counts())
			}
		}
		if err := running.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
