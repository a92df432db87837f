package handlertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
)

// newSteppedSession returns a session whose handler has three steps, which write one value each for a message, and a
// pointer to the number of runs of all steps. The function more, if not nil, is called by each step.
func newSteppedSession(config consumer.Config, more func(step string, outside *strings.Builder, tx *memstore.Tx, m *semel.Message) error) (s *session[*memstore.Tx], runs *int) {
	runs = new(int)
	names := []string{"reserve", "charge", "ship"}
	return &session[*memstore.Tx]{start: func(T) Handler[*memstore.Tx] {
		st, outside := memstore.New(), &strings.Builder{}
		h := Handler[*memstore.Tx]{Store: st, Messages: []*semel.Message{event("a"), event("b")}, Config: config}
		for _, name := range names {
			h.Steps = append(h.Steps, Step[*memstore.Tx]{Name: name, Run: func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
				*runs++
				if more != nil {
					if err := more(name, outside, tx, m); err != nil {
						return err
					}
				}
				return tx.Add(name+" "+m.ID(), 1)
			}})
		}
		h.Effect = func(context.Context) (text string, err error) {
			for _, name := range append(slices.Clone(names), "number") {
				for _, id := range []string{"a", "b"} {
					text += fmt.Sprintf("%s %s: %s\n", name, id, st.Get(name+" "+id))
				}
			}
			return text + outside.String(), nil
		}
		return h
	}}, runs
}

func TestEachStepIsDisturbedAndTakesEffectOnce(t *testing.T) {
	// The expected number of runs of the three steps for two messages, in all test worlds of a subtest. A step that is
	// completed does not run again, so a crash after a COMMIT causes no further run.
	want := map[string]int{
		"second attempt": 6, "failed transaction": 2, "rollback and second run": 12, "rerun of a success": 12, "duplicate after success": 6,
		"concurrent duplicates": 6, "COMMIT reply lost, no crash": 6, "conflict": 6, "dead-letter retry": 12,
		"crash before the transaction begins": 6, "crash after the mark": 6, "crash before the handler": 6, "crash after the handler": 12,
		"crash before COMMIT": 12, "crash after COMMIT, with the reply lost": 6, "crash after COMMIT, before the ack": 6,
		"connection cut before COMMIT": 8, "poison message": 8,
	}
	s, runs := newSteppedSession(consumer.Config{}, nil)
	for _, c := range cases[*memstore.Tx]() {
		*runs = 0
		var skip *NotRun
		switch err := s.run(t, c); {
		case errors.As(err, &skip):
			t.Logf("%s: %v", c.name, err)
			continue
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
		}
		if n, known := want[c.name]; known && *runs != n {
			t.Errorf("%s: the steps ran %d times, want %d", c.name, *runs, n)
		}
		delete(want, c.name)
	}
	if len(want) > 0 {
		t.Errorf("these subtests did not run: %v", want)
	}
}

func TestFaultsOfStepsAreFound(t *testing.T) {
	for says, fault := range map[string]struct {
		in   string
		more func(step string, outside *strings.Builder, tx *memstore.Tx, m *semel.Message) error
	}{
		"a step reads what the steps of other messages change": {"two undisturbed runs", numbered},
		"the handler depends on m.Attempt": {"second attempt", func(_ string, _ *strings.Builder, tx *memstore.Tx, m *semel.Message) error {
			return tx.Set("number "+m.ID(), fmt.Append(nil, m.Attempt))
		}},
		"the handler writes outside its transaction": {rollbackName, func(step string, outside *strings.Builder, _ *memstore.Tx, m *semel.Message) error {
			if step == "reserve" {
				outside.WriteString(m.ID())
			}
			return nil
		}},
	} {
		s, _ := newSteppedSession(consumer.Config{}, fault.more)
		for _, c := range cases[*memstore.Tx]() {
			if err := s.run(t, c); err != nil && c.name == fault.in {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%s: %v; want %q", c.name, err, says)
				}
				break
			} else if c.name == fault.in {
				t.Errorf("%s passes; want %q", c.name, says)
			}
		}
	}
}

// numbered gives each message the next number in its first step, and reads the last number in its second step.
func numbered(step string, _ *strings.Builder, tx *memstore.Tx, m *semel.Message) error {
	switch step {
	case "reserve":
		return tx.Add("last", 1)
	case "charge":
		last, err := tx.Get("last")
		if err != nil {
			return err
		}
		return tx.Set("number "+m.ID(), last)
	}
	return nil
}

func TestStepsThatWaitForTheMessagesOfTheirKeyRunOneMessageAfterTheOther(t *testing.T) {
	s, _ := newSteppedSession(consumer.Config{OnParked: consumer.OnParkedBlock}, numbered)
	for _, c := range cases[*memstore.Tx]() {
		var skip *NotRun
		if err := s.run(t, c); err != nil && !errors.As(err, &skip) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
