package paired

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/must"
)

// scriptedMeasure returns a Measure that returns the given figures, one for each run.
func scriptedMeasure(name string, log *[]string, figures ...float64) Measure {
	next := 0
	return func(context.Context) (Sample, error) {
		*log = append(*log, name)
		if next == len(figures) {
			return nil, errors.New("the machine went away")
		}
		next++
		return Sample{"row": {Main: figures[next-1], Beside: []float64{3, 1600}}, name: {}}, nil
	}
}

func TestTheBaseIsMeasuredBeforeAndAfterThePresent(t *testing.T) {
	var turns []string
	// In this test the machine becomes slower: each run takes longer than the run before.
	c := must.Get(Compare(t.Context(), 2, scriptedMeasure("base", &turns, 100, 200, 400, 800), scriptedMeasure("present", &turns, 150, 600), io.Discard))(t)
	if want := []string{"base", "present", "base", "base", "present", "base"}; !slices.Equal(turns, want) {
		t.Errorf("the turns were %q", turns)
	}
	r := c.Of("row")
	if r.Ratio.Median != 1 || r.Base.Median != 300 || r.Present.Median != 375 {
		t.Errorf("a drift that meets both makes a difference: %+v", r)
	}
	if r.Itself.Median != 2 || r.Differs() != 1 {
		t.Errorf("the base differs from itself by %+v", r.Itself)
	}
	if rows, alone := c.Rows(), c.Alone(); !slices.Equal(rows, []string{"row"}) || !slices.Equal(alone, []string{"base", "present"}) {
		t.Errorf("rows %q, alone %q", rows, alone)
	}
}

func TestWhatWasMeasuredBeforeAnErrorIsKept(t *testing.T) {
	var turns []string
	c, err := Compare(t.Context(), 3, scriptedMeasure("base", &turns, 1, 1, 1, 1), scriptedMeasure("present", &turns, 1), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "round 2, present: the machine went away") || len(c.Rounds) != 1 {
		t.Errorf("%d rounds, %v", len(c.Rounds), err)
	}
}

func TestAComparisonOfNothingIsAnError(t *testing.T) {
	empty := func(context.Context) (Sample, error) { return Sample{}, nil }
	if _, err := Compare(t.Context(), 1, empty, empty, io.Discard); err == nil || !strings.Contains(err.Error(), "no row in common") {
		t.Error(err)
	}
	if _, err := Compare(t.Context(), 0, empty, empty, io.Discard); err == nil || !strings.Contains(err.Error(), "at least 1") {
		t.Error(err)
	}
}

// verdictOf returns the result of the method verdict for rounds with three values each: base, current tree, and base
// again.
func verdictOf(table Table, rounds ...[3]float64) string {
	var c Comparison
	for _, r := range rounds {
		c.Rounds = append(c.Rounds, Round{Sample{"row": {Main: r[0]}}, Sample{"row": {Main: r[1]}}, Sample{"row": {Main: r[2]}}})
	}
	return table.verdict(c.Of("row"))
}

func TestADifferenceCountsOnlyIfItIsLargerThanThatOfEqualCode(t *testing.T) {
	for _, c := range []struct {
		what  string
		more  bool
		round [3]float64
		want  string
	}{
		{"slower within what equal code differs by", false, [3]float64{100, 112, 110}, "as equal code (± 10.0 %)"},
		{"slower", false, [3]float64{100, 120, 110}, "WORSE (± 10.0 %)"},
		{"faster", false, [3]float64{100, 50, 90}, "better (± 10.0 %)"},
		{"a lower rate", true, [3]float64{100, 50, 90}, "WORSE (± 10.0 %)"},
		{"a higher rate", true, [3]float64{100, 150, 110}, "better (± 10.0 %)"},
		{"equal to the last digit", true, [3]float64{100, 100, 100}, "as equal code (± 0.0 %)"},
	} {
		if got := verdictOf(Table{More: c.more}, c.round, c.round); got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
	if got := verdictOf(Table{}, [3]float64{100, 90, 100}, [3]float64{100, 130, 100}, [3]float64{100, 130, 100}, [3]float64{100, 80, 100}); got != "as equal code (± 0.0 %)" {
		t.Errorf("half of the rounds slower, half faster: %q", got)
	}
}

func TestTheTableSaysWhatWasCompared(t *testing.T) {
	var turns []string
	c := must.Get(Compare(t.Context(), 1, scriptedMeasure("base", &turns, 100, 100), scriptedMeasure("present", &turns, 200), io.Discard))(t)
	var text strings.Builder
	must.OK(t, GoTable.Write(&text, c, "abc", "def-dirty"))
	for _, want := range []string{
		"Base abc, present def-dirty; 1 rounds",
		"| benchmark | ns: base | present | present : base | base : itself | verdict | allocations: base, present | bytes: base, present |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n",
		"| row | 100 – **100** – 100 | 200 – **200** – 200 | 2.000 – **2.000** – 2.000 | 1.000 – **1.000** – 1.000 | WORSE (± 0.0 %) | 3.00, 3.00 | 1600, 1600 |",
		"Not compared, because one of the two does not have them: base, present.",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}
