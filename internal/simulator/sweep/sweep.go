// Package sweep runs many seeds of the simulator, reports their coverage, and searches for seeds that break a law.
package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel/internal/simulator/plan"

	"github.com/semel-go/semel/internal/simulator"
	"github.com/semel-go/semel/internal/simulator/trace"
)

// Summary is the result of running many seeds.
type Summary struct {
	Seeds    int
	Start    uint64
	Coverage trace.Coverage
	// Failures has the seeds that broke a law, in ascending order.
	Failures []Failure
	Took     time.Duration

	steps, faults []int
	last          uint64
}

// Failure is a seed that broke a law.
type Failure struct {
	Seed   uint64
	Broken *simulator.Violation
}

// Run runs the given number of seeds on all processors: the first seeds, not below the parameter start, that have the
// mode.
func Run(start uint64, seeds int, mode plan.Mode, make simulator.Maker) *Summary {
	all := []uint64{}
	for seed := start; len(all) < seeds; seed++ {
		if mode.Has(seed) {
			all = append(all, seed)
		}
	}
	return run(all, make)
}

func run(seeds []uint64, make simulator.Maker) *Summary {
	began := time.Now()
	s := &Summary{Seeds: len(seeds), Coverage: trace.Coverage{}}
	if len(seeds) > 0 {
		s.Start, s.last = seeds[0], seeds[len(seeds)-1]
	}
	var next atomic.Int64
	var lock sync.Mutex // guards s
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(seeds)); i = next.Add(1) - 1 {
				r := simulator.Run(seeds[i], make, false)
				lock.Lock()
				s.add(seeds[i], r)
				lock.Unlock()
			}
		})
	}
	workers.Wait()
	slices.SortFunc(s.Failures, func(a, b Failure) int { return cmp.Compare(a.Seed, b.Seed) })
	s.Took = time.Since(began)
	return s
}

func (s *Summary) add(seed uint64, r simulator.Result) {
	s.steps = append(s.steps, r.Steps)
	s.faults = append(s.faults, r.Faults)
	s.Coverage.Merge(r.Coverage)
	if r.Broken != nil {
		s.Failures = append(s.Failures, Failure{seed, r.Broken})
	}
}

func median(of []int) int {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// Text returns the report.
func (s *Summary) Text() string {
	var b strings.Builder
	total := 0
	for _, n := range s.steps {
		total += n
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Coverage)) {
		fmt.Fprintf(&b, "%s\n", kind)
		for _, name := range slices.Sorted(maps.Keys(s.Coverage[kind])) {
			fmt.Fprintf(&b, "  %-60s %10d\n", name, s.Coverage[kind][name])
		}
	}
	for _, name := range s.Coverage.Unreached() {
		fmt.Fprintf(&b, "never reached: %s\n", name)
	}
	fmt.Fprintf(&b, "%d seeds of %d to %d in %v\n", s.Seeds, s.Start, s.last, s.Took.Round(time.Millisecond))
	fmt.Fprintf(&b, "steps: %d, median of a seed %d; faults: median of a seed %d\n", total, median(s.steps), median(s.faults))
	fmt.Fprintf(&b, "seeds that broke a law: %d\n", len(s.Failures))
	for _, f := range s.Examples() {
		fmt.Fprintf(&b, "seed %d breaks %v\n", f.Seed, f.Broken)
	}
	return b.String()
}

// Examples returns the first failure of each kind.
func (s *Summary) Examples() []Failure {
	var first []Failure
	for _, f := range s.Failures {
		if !slices.ContainsFunc(first, func(g Failure) bool { return g.Broken.Like(f.Broken) }) {
			first = append(first, f)
		}
	}
	return first
}

// Search describes a search for a seed that breaks a law.
type Search struct {
	Start uint64
	Seeds int
	// Mode, if not empty, limits the search to seeds of this mode. Law, if not empty, limits the search to
	// this law.
	Mode plan.Mode
	Law  string
}

// First returns the smallest seed that breaks the law. At first, only a few seeds run at a time, because most faults
// are found soon; later, more seeds run at a time.
func First(make simulator.Maker, s Search) (Failure, bool) {
	chunk, end := 4, s.Start+uint64(s.Seeds)
	for next := s.Start; next < end; chunk = min(2*chunk, 64) {
		var seeds []uint64
		for ; next < end && len(seeds) < chunk; next++ {
			if s.Mode.Has(next) {
				seeds = append(seeds, next)
			}
		}
		for _, f := range run(seeds, make).Failures {
			if s.Law == "" || f.Broken.Law == s.Law {
				return f, true
			}
		}
	}
	return Failure{}, false
}
