// Command mutate makes small mistakes in the code, one at a time, and reports which mistakes the tests and the
// simulator find. The arguments are names of targets; without arguments, all targets are run. The score of a target is
// the percentage of its mistakes that were found. If a score is below the value of the flag -least, the exit code is 1.
// On an interrupt, the command ends and prints the score so far.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"

	"github.com/semel-go/semel/internal/simulator/mutation"
)

func main() {
	sample := flag.Int("sample", 0, "run only this `number` of mutants of each target")
	seed := flag.Uint64("seed", 1, "choose the sample by this `seed`")
	seeds := flag.Int("seeds", 300, "number of `seeds` of the simulator to run for a mutant that no test finds")
	match := flag.String("match", "", "run only mutants whose line in the report matches this `expression`, such as commit.go:12")
	least := flag.Float64("least", 0, "fail if a target scores less than this `percent`")
	flag.Usage = usage
	flag.Parse()
	o := mutation.Options{Sample: *sample, Seed: *seed, Seeds: *seeds}
	err := error(nil)
	if *match != "" {
		o.Match, err = regexp.Compile(*match)
	}
	chosen, unknown := choose(flag.Args())
	if err != nil || unknown != "" {
		fmt.Fprintf(os.Stderr, "mutate: no target %q, or a wrong expression: %v\n", unknown, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := measure(ctx, chosen, o, *least)
	stop()
	os.Exit(code)
}

func usage() {
	fmt.Fprintln(os.Stderr, "mutate [FLAG…] [TARGET…]: run mutants of the targets:")
	for _, t := range targets() {
		fmt.Fprintf(os.Stderr, "  %s: %v\n", t.Name, t.Files)
	}
	flag.PrintDefaults()
}

// choose returns the targets with the given names. The result unknown is the first name without a target.
func choose(names []string) (chosen []mutation.Target, unknown string) {
	all := targets()
	if len(names) == 0 {
		return all, ""
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(t mutation.Target) bool { return t.Name == name })
		if i < 0 {
			return nil, name
		}
		chosen = append(chosen, all[i])
	}
	return chosen, ""
}

func measure(ctx context.Context, chosen []mutation.Target, o mutation.Options, least float64) (code int) {
	root, err := mutation.Root()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	for _, t := range chosen {
		s, err := mutation.Measure(ctx, root, t, o)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		fmt.Print(s.Text())
		if s.Percent() < least {
			code = 1
		}
		if ctx.Err() != nil {
			return 1
		}
	}
	return code
}
