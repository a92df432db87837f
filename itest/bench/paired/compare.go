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

// Reading is the result of one run for one row. The field Main is the value to compare. The field Beside has further
// values, which are only shown.
type Reading struct {
	Main   float64
	Beside []float64
}

// Sample has the results of one run by the name of the row.
type Sample map[string]Reading

// Measure measures once and returns the results.
type Measure func(context.Context) (Sample, error)

// Round has the results of three runs: the base, the current tree, and the base again.
type Round struct{ First, Present, Again Sample }

// Comparison has the results of all rounds.
type Comparison struct {
	Rounds  []Round
	Elapsed time.Duration
}

// Compare measures the given number of rounds and reports its progress. After an error, Compare also returns the rounds
// that were complete before the error.
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

// Rows returns the names of the rows that every run has measured, sorted.
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

// Alone returns the sorted names of the rows that were measured by some runs, but not by all runs.
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

// Result is the comparison of one row.
type Result struct {
	Base, Present bench.Quartiles
	// Ratio is the value of the current tree divided by the mean of the base's two values. Itself is the base's second
	// value divided by the base's first value. Ratio and Itself have one value for each round.
	Ratio, Itself bench.Quartiles
	// BesideBase and BesidePresent are the medians of the further values (Reading.Beside) of the base and of the
	// current tree.
	BesideBase, BesidePresent []float64
}

// Of returns the result of a row. Every run must have measured the row.
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

// Differs returns by which fraction two runs of the same code differ, in the middle half of the rounds.
func (r Result) Differs() float64 {
	return max(math.Abs(r.Itself.Lower-1), math.Abs(r.Itself.Upper-1))
}

// Change returns by which fraction the value of the current tree is larger than the value of the base. The result is
// zero if two runs of the same code differ by as much, or if the middle half of the rounds has both larger and smaller
// values.
func (r Result) Change() float64 {
	change := r.Ratio.Median - 1
	if math.Abs(change) <= r.Differs() || r.Ratio.Lower <= 1 && r.Ratio.Upper >= 1 {
		return 0
	}
	return change
}
