package paired

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/semel-go/semel/itest/bench"
)

// Reading is what one run says of one row: the figure that is compared, and
// those that stand beside it.
type Reading struct {
	Main   float64
	Beside []float64
}

// Sample is what one run measured, by row.
type Sample map[string]Reading

// Measure is one run.
type Measure func(context.Context) (Sample, error)

// Round is one turn of base, present and base again.
type Round struct{ First, Present, Again Sample }

// Comparison is all rounds.
type Comparison struct {
	Rounds  []Round
	Elapsed time.Duration
}

// Compare measures so many rounds and tells progress of each. What was measured
// before an error is returned, too.
func Compare(ctx context.Context, rounds int, base, present Measure, progress io.Writer) (c Comparison, err error) {
	if rounds < 1 {
		return c, fmt.Errorf("%d rounds: at least 1", rounds)
	}
	began := time.Now()
	for n := range rounds {
		var r Round
		for _, turn := range []struct {
			name string
			to   *Sample
			run  Measure
		}{{"base", &r.First, base}, {"present", &r.Present, present}, {"base again", &r.Again, base}} {
			if *turn.to, err = turn.run(ctx); err != nil {
				return c, fmt.Errorf("round %d, %s: %w", n+1, turn.name, err)
			}
		}
		c.Rounds, c.Elapsed = append(c.Rounds, r), time.Since(began)
		fmt.Fprintf(progress, "round %d of %d, %v so far\n", n+1, rounds, c.Elapsed.Round(time.Second))
	}
	if len(c.Rows()) == 0 {
		return c, errors.New("base and present have no row in common")
	}
	return c, nil
}

// Rows are those that every run has measured, sorted.
func (c Comparison) Rows() []string {
	if len(c.Rounds) == 0 {
		return nil
	}
	common := maps.Clone(c.Rounds[0].First)
	for _, s := range c.samples() {
		maps.DeleteFunc(common, func(row string, _ Reading) bool { _, is := s[row]; return !is })
	}
	return slices.Sorted(maps.Keys(common))
}

// Alone are rows that some runs have not measured, sorted.
func (c Comparison) Alone() []string {
	alone := Sample{}
	for _, s := range c.samples() {
		maps.Copy(alone, s)
	}
	for _, row := range c.Rows() {
		delete(alone, row)
	}
	return slices.Sorted(maps.Keys(alone))
}

func (c Comparison) samples() (all []Sample) {
	for _, r := range c.Rounds {
		all = append(all, r.First, r.Present, r.Again)
	}
	return all
}

// Result is what a row came to.
type Result struct {
	Base, Present bench.Quartiles
	// Ratio is of the present to the mean of the base's two runs, Itself of the
	// base's second run to its first, round by round.
	Ratio, Itself bench.Quartiles
	// BesideBase and BesidePresent are medians.
	BesideBase, BesidePresent []float64
}

// Of is the result of a row that every run has measured.
func (c Comparison) Of(row string) (r Result) {
	var base, present, ratio, itself []float64
	for _, round := range c.Rounds {
		first, now, again := round.First[row].Main, round.Present[row].Main, round.Again[row].Main
		base, present = append(base, first, again), append(present, now)
		ratio, itself = append(ratio, now/((first+again)/2)), append(itself, again/first)
	}
	r.Base, r.Present = bench.QuartilesOf(base), bench.QuartilesOf(present)
	r.Ratio, r.Itself = bench.QuartilesOf(ratio), bench.QuartilesOf(itself)
	for i := range c.Rounds[0].First[row].Beside {
		var base, present []float64
		for _, round := range c.Rounds {
			base = append(base, round.First[row].Beside[i], round.Again[row].Beside[i])
			present = append(present, round.Present[row].Beside[i])
		}
		r.BesideBase = append(r.BesideBase, bench.QuartilesOf(base).Median)
		r.BesidePresent = append(r.BesidePresent, bench.QuartilesOf(present).Median)
	}
	return r
}

// Differs is by how much equal code differs in the middle half of the rounds.
func (r Result) Differs() float64 {
	return max(math.Abs(r.Itself.Lower-1), math.Abs(r.Itself.Upper-1))
}

// Change is how much larger the present's figure is than the base's; zero if
// equal code differs as much, or if the middle half of the rounds has it larger
// and smaller.
func (r Result) Change() float64 {
	change := r.Ratio.Median - 1
	if math.Abs(change) <= r.Differs() || r.Ratio.Lower <= 1 && r.Ratio.Upper >= 1 {
		return 0
	}
	return change
}
