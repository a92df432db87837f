package recording_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/recording"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// setAside makes a recording of a message whose handler parks the message with the given reason.
func setAside(t *testing.T, ids bool, id string, print semel.Fingerprint, why semel.Reason) string {
	t.Helper()
	m := newMillOf(recording.New(1<<20, ids))
	actions := m.step(machine.Fetched{Items: []*machine.Item{{Lane: source.Lane{ID: "orders/0", Epoch: 1}, Source: "shop", Identity: id, Print: print, Before: -1, Size: 400}}})
	for n := 0; len(actions) > 0 && n < 100; n++ {
		a := actions[0]
		switch actions = actions[1:]; a := a.(type) {
		case machine.Begin:
			actions = append(actions, m.step(machine.Marked{Flight: a.Flight, Verdicts: []store.Verdict{{Kind: store.Fresh}}})...)
		case machine.Run:
			actions = append(actions, m.step(machine.Ran{Flight: a.Flight, Failed: true, Failure: machine.Failure{Class: store.ClassRetry, Decision: semel.DecidePark, Reason: why}})...)
		case machine.Commit:
			actions = append(actions, m.step(machine.Ended{Flight: a.Flight, Outcome: store.Committed, Culprit: -1})...)
		case *machine.Settle:
			actions = append(actions, m.step(machine.Settled{Settle: a})...)
		}
	}
	var b bytes.Buffer
	if err := m.recorder.Write(&b, "a test asks"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// steps returns a recording without its header, which depends on the build, and without its sum.
func steps(t *testing.T, text string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Fatalf("a line is no JSON: %.80q", line)
		}
	}
	return strings.Join(lines[1:len(lines)-1], "\n")
}

func TestARecordingIdentifiesNoMessage(t *testing.T) {
	const id, why = "order-4711", semel.Reason("account of smith")
	print := semel.Fingerprint{Version: 1, Sum: [16]byte([]byte("print-of-4711..."))}
	t.Run("K14_neither_by_its_identity_nor_by_its_fingerprint_nor_by_its_handlers_reason", func(t *testing.T) {
		text := setAside(t, false, id, print, why)
		for _, secret := range []string{"4711", "print-of", "smith"} {
			if strings.Contains(text, secret) {
				t.Errorf("it says %q", secret)
			}
		}
		if !strings.Contains(text, "a handler's reason") {
			t.Error("no reason is recorded, so that this test looks for nothing")
		}
		if known := setAside(t, false, id, print, semel.ReasonPrecondition); !strings.Contains(known, string(semel.ReasonPrecondition)) {
			t.Error("one of Semel's reasons is not recorded")
		}
	})
	t.Run("K14_nor_by_a_hash_that_who_guesses_names_can_make", func(t *testing.T) {
		none := semel.Fingerprint{}
		if first, second := steps(t, setAside(t, true, id, none, why)), steps(t, setAside(t, true, id, none, why)); first != second {
			t.Fatal("two recordings of the same differ by more than what is hidden")
		}
		if first, second := steps(t, setAside(t, false, id, none, why)), steps(t, setAside(t, false, id, none, why)); first == second {
			t.Error("an identity has one hash in all recordings")
		}
		if first, second := steps(t, setAside(t, false, "", print, why)), steps(t, setAside(t, false, "", print, why)); first == second {
			t.Error("a fingerprint has one hash in all recordings")
		}
	})
	t.Run("K14_they_are_told_where_they_are_asked_for", func(t *testing.T) {
		if text := setAside(t, true, id, print, why); !strings.Contains(text, id) || !strings.Contains(text, string(why)) || strings.Contains(text, "print-of") {
			t.Error("they are not")
		}
	})
}
