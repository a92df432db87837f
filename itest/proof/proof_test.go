package proof

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// small is the ledger of a fault test that does no work.
type small struct {
	ledger.Balance
	Rounds  int     `json:"rounds_that_were"`
	Seconds Seconds `json:"seconds"`
}

func (l small) Fault() error {
	return errors.Join(l.Wrong(), ledger.AtLeast(1, l.Rounds, "rounds"))
}

// smallRoom is a fault test for these Go tests. If the fault of smallRoom is added on purpose, each run doubles an
// effect.
type smallRoom struct{ rounds, runs int }

func (r *smallRoom) Flags(flags *flag.FlagSet) {
	flags.IntVar(&r.rounds, "rounds", 3, "how many rounds there are")
	flags.IntVar(&r.runs, "runs", 1, "how many runs there are")
}

func (r *smallRoom) Plants() []string { return []string{"double", "nothing"} }

func (r *smallRoom) Runs(c Choice) (runs []Run) {
	prove := func(context.Context, Stage) small {
		effects := map[string]int{"a": 1, "b": 1}
		if c.Plant == "double" {
			effects["b"]++
		}
		return small{Balance: ledger.Weigh(effects, slices.Values([]string{"a", "b"}), 0), Rounds: r.rounds, Seconds: 1.26}
	}
	for range r.runs {
		runs = append(runs, Run{Title: "small", Within: time.Minute, Prove: Proving(prove)})
	}
	return runs
}

// runSmall calls Main with smallRoom, and returns the output and the error.
func runSmall(t *testing.T, args ...string) (string, error) {
	t.Setenv("TMPDIR", t.TempDir())
	var out bytes.Buffer
	err := Main(t.Context(), &smallRoom{}, args, &out)
	return out.String(), err
}

func TestAReportHasTheSameNamesAsATableAndAsJSON(t *testing.T) {
	table := must.Get(runSmall(t))(t)
	text := must.Get(runSmall(t, "-json"))(t)
	var fields map[string]json.RawMessage
	must.OK(t, json.Unmarshal([]byte(text), &fields))
	if lines := strings.Count(table, "\n"); lines != len(fields) || len(fields) != 8 {
		t.Errorf("%d lines and %d fields:\n%s\n%s", lines, len(fields), table, text)
	}
	for name, value := range fields {
		line := strings.ReplaceAll(name, "_", " ")
		if !slices.ContainsFunc(strings.Split(table, "\n"), func(l string) bool {
			return strings.HasPrefix(strings.TrimSpace(l), line+" ") && strings.HasSuffix(l, " "+string(value))
		}) {
			t.Errorf("the table has no line %q %s:\n%s", line, value, table)
		}
	}
}

func TestATableListsTheFieldsOfAnObjectUnderItsName(t *testing.T) {
	fields := must.Get(fieldsOf([]byte(`{"lost_ones": 0, "faults": {"a_kill": 2, "halves": {"first": 1}}}`)))(t)
	if want := [][2]string{{"lost ones", "0"}, {"faults: a kill", "2"}, {"faults: halves: first", "1"}}; !slices.Equal(fields, want) {
		t.Errorf("%q, want %q", fields, want)
	}
}

func TestAPlantedFaultMustBeFound(t *testing.T) {
	if out, err := runSmall(t, "-plant", "double"); err != nil || !strings.Contains(out, "the planted fault is found: lost 0, doubled 1") {
		t.Errorf("%v: %s", err, out)
	}
	for plant, says := range map[string]string{"nothing": "was not detected", "unheard-of": "is unknown"} {
		if _, err := runSmall(t, "-plant", plant); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", plant, err)
		}
	}
}

func TestEveryRunThatIsNoProofIsTold(t *testing.T) {
	_, err := runSmall(t, "-rounds", "0", "-runs", "2")
	if err == nil || strings.Count(err.Error(), "small: only 0 rounds, not 1: no proof; the files are in ") != 2 {
		t.Error(err)
	}
}

func TestWhatHappensIsInOrderAndSpreadEvenly(t *testing.T) {
	var s Schedule
	var at, reached []float64
	s.Spread(0.5, 1, 1, func(context.Context) { at = append(at, -1) })
	s.Spread(0, 1, 2, func(context.Context) { at = append(at, -2) })
	s.Run(t.Context(), func(_ context.Context, to float64) { reached = append(reached, to) })
	if !slices.Equal(reached, []float64{0.25, 0.75, 0.75}) || !slices.Equal(at, []float64{-2, -1, -2}) {
		t.Errorf("%v at %v", at, reached)
	}
}

func TestAWordThatIsNoFlagIsRefusedBeforeAnythingRuns(t *testing.T) {
	for _, args := range [][]string{{"quick"}, {"quick", "-json"}} {
		if out, err := runSmall(t, args...); err == nil || !strings.Contains(err.Error(), `"quick" is no flag`) || out != "" {
			t.Errorf("%q: %q, %v", args, out, err)
		}
	}
}

func TestARunThatFlagsMakeLongerMayTakeLonger(t *testing.T) {
	type sizes struct {
		Publish time.Duration `flag:"over how long messages are published"`
	}
	form := &Form[sizes, small]{Within: 15 * time.Minute, Lasts: func(s sizes) time.Duration { return s.Publish }, Sizes: sizes{4 * time.Minute}}
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	form.Flags(flags)
	must.OK(t, flags.Parse([]string{"-publish", "30m"}))
	if within := form.Runs(Choice{})[0].Within; within != 45*time.Minute {
		t.Errorf("it may take %v, want 45m", within)
	}
}

func TestEveryIDIsDeliveredAndTheOrderIsTheSeeds(t *testing.T) {
	seen, all := map[int]bool{}, Shuffled(2_000, 1_600, 7)
	for _, id := range all {
		seen[id] = true
	}
	if len(seen) != 1_600 || len(all) != 2_000 {
		t.Errorf("%d ids in %d deliveries", len(seen), len(all))
	}
	if !slices.Equal(all, Shuffled(2_000, 1_600, 7)) {
		t.Error("the same seed gave two orders")
	}
}
