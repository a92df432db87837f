// Command simulate runs the simulator with many seeds and reports the coverage. The exit code is 1 if a law was broken
// or a required situation was never reached. If the argument is the name of a file, simulate replays the recording of a
// flight recorder in that file (docs/internals/recorder.md). For a recording, the exit code is 1 if a law is broken or
// the machine of the current build decides differently, and 2 if the file cannot be replayed.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/semel-go/semel/internal/simulator/plan"

	"github.com/semel-go/semel/internal/simulator"
	"github.com/semel-go/semel/internal/simulator/sweep"
)

func main() {
	seeds := flag.Int("seeds", 1000, "number of `seeds` to run")
	start := flag.Uint64("start", 1, "the first `seed`")
	seed := flag.Uint64("seed", 0, "run only this `seed`")
	history := flag.Bool("history", false, "with -seed, or a recording: print what happened")
	first := flag.Bool("first", false, "print only the first seed that breaks a law")
	law := flag.String("law", "", "with -first: look only for this `law`")
	mode := flag.String("mode", "", "run only seeds of this `mode`: calls, steps, intents, replay, twins or clocks")
	tries := flag.Int("shrink", 1500, "maximum number of `runs` to shorten a failing history")
	flag.Parse()
	switch {
	case flag.NArg() > 1:
		fmt.Fprintln(os.Stderr, "give one recording")
		os.Exit(2)
	case flag.NArg() == 1:
		os.Exit(replay(flag.Arg(0), *history))
	case *seed != 0:
		os.Exit(runOne(*seed, *history, *tries))
	case *first:
		os.Exit(findFirst(sweep.Search{Start: *start, Seeds: *seeds, Mode: plan.Mode(*mode), Law: *law}))
	}
	os.Exit(runMany(*start, *seeds, *tries, plan.Mode(*mode)))
}

// findFirst prints the first seed that breaks the law of the search, or any law if the search names none.
func findFirst(s sweep.Search) int {
	f, found := sweep.First(simulator.Real, s)
	if !found {
		fmt.Println("none")
		return 0
	}
	fmt.Printf("seed %d: %v\n", f.Seed, f.Broken)
	return 1
}

// runOne runs a single seed.
func runOne(seed uint64, history bool, tries int) int {
	r := simulator.Run(seed, simulator.Real, history)
	fmt.Print(r.History)
	if r.Broken != nil {
		explain(seed, tries)
		return 1
	}
	fmt.Printf("seed %d: %d steps, %d faults, %d lives; no law is broken\n", seed, r.Steps, r.Faults, r.Lives)
	return 0
}

// explain prints the run of a failing seed, and a shorter run that fails in the same way.
func explain(seed uint64, tries int) {
	long := simulator.Run(seed, simulator.Real, true)
	fmt.Printf("seed %d breaks %v\nthe end of its history:\n%s", seed, long.Broken, simulator.Tail(long.History, 30))
	short, size := simulator.Shrink(seed, simulator.Real, tries)
	fmt.Printf("short form, of %d decisions, breaks %v:\n%s\n", size, short.Broken, short.History)
}

// runMany runs consecutive seeds and prints a report. Only a long run must reach every required situation.
func runMany(start uint64, seeds, tries int, mode plan.Mode) int {
	s := sweep.Run(start, seeds, mode, simulator.Real)
	fmt.Print(s.Text())
	for _, f := range s.Examples() {
		explain(f.Seed, tries)
	}
	const long = 2000
	if len(s.Failures) > 0 || seeds >= long && mode == "" && len(s.Coverage.Unreached()) > 0 {
		return 1
	}
	return 0
}
