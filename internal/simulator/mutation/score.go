package mutation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/simulator/plan"
)

// Target is a part of the code. The tests must find mutants (changed functions) of this part.
type Target struct {
	Name string
	// Files are patterns of file names, such as "internal/machine/*.go". Functions reads the target's functions from the
	// files that match.
	Files []string
	// Tests are the tests that may find mutants (changed functions), the fastest test first. If Simulated is true,
	// seeds of the simulator look for the mutants that no test finds. Mode limits the seeds to one mode.
	Tests     []Test
	Simulated bool
	Mode      plan.Mode
}

// Test selects the tests of a package whose names match Run.
type Test struct{ Package, Run string }

// Options selects the mutants of a target to run.
type Options struct {
	// Sample, if not 0, is the number of mutants to run, chosen by Seed.
	Sample int
	Seed   uint64
	// Match, if not nil, selects mutants by their text.
	Match *regexp.Regexp
	// Seeds is the number of simulator seeds for a Target with Simulated.
	Seeds int
}

// Score is the result of a target.
type Score struct {
	Target Target
	// Possible is the number of mutants before the sample is taken, including those that do not compile.
	// Mutants is the number of mutants that ran.
	Possible, Mutants int
	// ByTests and BySeeds are the numbers of found mutants. TimedOut is the number of found mutants that did
	// not end in time.
	ByTests, BySeeds, TimedOut int
	Survivors                  []Change
	Took                       time.Duration
}

// Percent returns the percentage of mutants found.
func (s *Score) Percent() float64 {
	return 100 * float64(s.ByTests+s.BySeeds) / float64(max(1, s.Mutants))
}

// Text returns the score, with a line for each mutant that was not found.
func (s *Score) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s: %.1f %% of %d mutants found (%d possible): %d by tests, %d by seeds, %d of them did not end in time; %d survived; %v\n", s.Target.Name,
		s.Percent(), s.Mutants, s.Possible, s.ByTests, s.BySeeds, s.TimedOut, len(s.Survivors), s.Took.Round(time.Second))
	for _, c := range s.Survivors {
		fmt.Fprintf(&out, "  %s\n", c)
	}
	return out.String()
}

// Measure runs the mutants of a target in the tree at root. If ctx ends, Measure stops and returns the score
// so far.
func Measure(ctx context.Context, root string, target Target, o Options) (*Score, error) {
	began := time.Now()
	s := &Score{Target: target}
	mutants, err := s.choose(root, o)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	if mutants, err = Compiling(root, folder, mutants); err != nil {
		return nil, err
	}
	r := &runner{score: s, seeds: o.Seeds}
	if err := r.prepare(ctx, root, folder, mutants); err != nil {
		return nil, err
	}
	err = r.runAll(ctx, mutants)
	s.Took = time.Since(began)
	return s, err
}

// choose lists the mutants of the target and takes the sample.
func (s *Score) choose(root string, o Options) ([]Change, error) {
	var mutants []Change
	for _, pattern := range s.Target.Files {
		all, err := Functions(root, pattern)
		if err != nil {
			return nil, err
		}
		for _, fn := range all {
			mutants = append(mutants, Mutants(fn)...)
		}
	}
	if o.Match != nil {
		mutants = slices.DeleteFunc(mutants, func(c Change) bool { return !o.Match.MatchString(c.String()) })
	}
	s.Possible = len(mutants)
	if o.Sample > 0 && o.Sample < len(mutants) {
		random := rand.New(rand.NewPCG(o.Seed, 0))
		random.Shuffle(len(mutants), func(i, j int) { mutants[i], mutants[j] = mutants[j], mutants[i] })
		mutants = mutants[:o.Sample]
	}
	return mutants, nil
}

// program is a program that fails if a mutant breaks its tests.
type program struct {
	folder, path string
	args         []string
	most         time.Duration
	simulates    bool
}

// runner runs the mutants of one target.
type runner struct {
	score    *Score
	seeds    int
	tree     *Tree
	programs []program
	lock     sync.Mutex // guards score and err
	err      error
}

// prepare builds the programs and runs each of them without a mutant. Each program must pass without a mutant. With a
// mutant, a program may take ten times as long.
func (r *runner) prepare(ctx context.Context, root, folder string, mutants []Change) (err error) {
	if r.tree, err = Plant(root, folder, mutants); err != nil {
		return err
	}
	for _, test := range r.score.Target.Tests {
		p := program{folder: test.Package, args: []string{"-test.failfast", "-test.run", test.Run}}
		if p.path, err = r.tree.Test("./" + test.Package); err != nil {
			return err
		}
		r.programs = append(r.programs, p)
	}
	if r.score.Target.Simulated && r.seeds > 0 {
		p := program{folder: ".", args: []string{"-first", "-seeds", fmt.Sprint(r.seeds), "-mode", string(r.score.Target.Mode)}, simulates: true}
		if p.path, err = r.tree.Program("./internal/simulator/simulate"); err != nil {
			return err
		}
		r.programs = append(r.programs, p)
	}
	for i := range r.programs {
		p, began := &r.programs[i], time.Now()
		ran, err := r.tree.Run(ctx, 0, time.Hour, p.folder, p.path, p.args...)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil || ran.Failed {
			return fmt.Errorf("mutation: %s: without a mutant the program of %s fails; fix the code first: %v: %s", r.score.Target.Name, p.folder, err, ran.Out)
		}
		p.most = 10*time.Since(began) + 5*time.Second
	}
	return nil
}

// runAll runs the mutants, one at a time on each core.
func (r *runner) runAll(ctx context.Context, mutants []Change) error {
	next := make(chan int)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := range next {
				r.runOne(ctx, i+1, mutants[i])
			}
		})
	}
	for i := range mutants {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	workers.Wait()
	slices.SortFunc(r.score.Survivors, func(a, b Change) int { return strings.Compare(a.String(), b.String()) })
	return r.err
}

// runOne runs a mutant in one program after the other until a program finds it.
func (r *runner) runOne(ctx context.Context, number int, mutant Change) {
	for _, p := range r.programs {
		ran, err := r.tree.Run(ctx, number, p.most, p.folder, p.path, p.args...)
		switch {
		case ctx.Err() != nil: // ctx has ended
			return
		case err != nil || ran.Failed:
			r.recordRun(p, ran, err)
			return
		}
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	r.score.Mutants++
	r.score.Survivors = append(r.score.Survivors, mutant)
}

func (r *runner) recordRun(p program, ran Ran, err error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.score.Mutants++
	if err != nil {
		r.err = err
	}
	if ran.TimedOut {
		r.score.TimedOut++
	}
	if p.simulates {
		r.score.BySeeds++
	} else {
		r.score.ByTests++
	}
}
