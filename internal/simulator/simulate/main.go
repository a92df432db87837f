// Command simulate runs the simulator over many seeds and reports what was
// met. It exits with 1 if a law was broken or something was never reached.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/semel-go/semel/internal/simulator"
)

func main() {
	seeds := flag.Int("seeds", 1000, "how many `seeds` to run")
	start := flag.Uint64("start", 1, "the first `seed`")
	seed := flag.Uint64("seed", 0, "run this one `seed`")
	history := flag.Bool("history", false, "with -seed: print what happened")
	tries := flag.Int("shrink", 4000, "how many `runs` may be spent to shorten a failing history")
	flag.Parse()
	if *seed != 0 {
		os.Exit(one(*seed, *history, *tries))
	}
	os.Exit(many(*start, *seeds, *tries))
}

// one runs a single seed.
func one(seed uint64, history bool, tries int) int {
	r := simulator.Run(seed, simulator.Real, history)
	fmt.Print(r.History)
	if r.Broken != nil {
		explain(seed, tries)
		return 1
	}
	fmt.Printf("seed %d: %d steps, %d faults, %d lives; no law is broken\n", seed, r.Steps, r.Faults, r.Lives)
	return 0
}

// explain prints a failing seed and its short form.
func explain(seed uint64, tries int) {
	short, size := simulator.Shrink(seed, simulator.Real, tries)
	fmt.Printf("seed %d breaks %v\nshort form, of %d decisions, breaks %v:\n%s\n", seed,
		simulator.Run(seed, simulator.Real, false).Broken, size, short.Broken, short.History)
}

// many runs seeds in a row and reports.
func many(start uint64, seeds, tries int) int {
	s := simulator.Sweep(start, seeds, simulator.Real)
	fmt.Print(s.Text())
	for _, f := range s.Examples() {
		explain(f.Seed, tries)
	}
	if len(s.Failures) > 0 || len(s.Unreached()) > 0 {
		return 1
	}
	return 0
}
