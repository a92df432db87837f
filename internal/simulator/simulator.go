package simulator

import (
	"slices"
	"strings"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/chance"
	"github.com/semel-go/semel/internal/simulator/trace"
)

// Result is what a run showed.
type Result struct {
	// Steps is how many events the machines took; Faults how many faults the
	// world made; Lives how many machines there were.
	Steps, Faults, Lives int
	// Broken is the law that was broken, nil if none was.
	Broken *Violation
	// History is what happened, if it was asked for.
	History  string
	Coverage trace.Coverage
	choices  []uint32
}

// Run simulates a seed with the machines that make makes. With history it
// keeps what happened as text.
func Run(seed uint64, make Maker, history bool) Result {
	return simulate(chance.FromSeed(seed), make, history)
}

func simulate(c *chance.Choices, make Maker, keep bool) Result {
	w := newWorld(c, make)
	if keep {
		w.history = &trace.History{}
	}
	return w.result()
}

func newWorld(c *chance.Choices, make Maker) *world {
	return &world{shared: &shared{choices: c, coverage: trace.Coverage{}, mostSteps: mostSteps}, make: make}
}

// result runs the world to its end.
func (w *world) result() Result {
	w.start()
	w.run()
	r := Result{Steps: w.steps, Faults: w.faults, Lives: w.lives, Broken: w.law, Coverage: w.coverage, choices: slices.Clone(w.choices.Used())}
	if w.history != nil {
		r.History = w.history.Text.String()
	}
	return r
}

// Shrink returns a run that breaks the same law as the seed's and is as short
// as it can be made with so many tries, and how many decisions it needs.
func Shrink(seed uint64, make Maker, tries int) (Result, int) {
	first := Run(seed, make, false)
	if first.Broken == nil {
		return first, len(first.choices)
	}
	s := shrinker{make: make, law: first.Broken.form, best: first.choices, tries: tries, most: 2*first.Steps + 100}
	s.shrink()
	return simulate(chance.FromList(s.best), make, true), len(s.best)
}

// shrinker makes a list of choices shorter.
type shrinker struct {
	make  Maker
	law   string
	best  []uint32
	tries int
	most  int // steps of one try
}

// try keeps the list if it still breaks the law.
func (s *shrinker) try(list []uint32) bool {
	if s.tries--; s.tries < 0 {
		return false
	}
	w := newWorld(chance.FromList(list), s.make)
	w.mostSteps = s.most
	r := w.result()
	s.tries -= r.Steps / 2000
	if r.Broken == nil || r.Broken.form != s.law {
		return false
	}
	s.best = trimZeros(r.choices)
	return true
}

// trimZeros drops the zeros at the end, which a list gives anyway.
func trimZeros(list []uint32) []uint32 {
	for len(list) > 0 && list[len(list)-1] == 0 {
		list = list[:len(list)-1]
	}
	return list
}

func (s *shrinker) shrink() {
	for before := -1; s.tries > 0 && before != weight(s.best); {
		before = weight(s.best)
		for size := len(s.best) / 2; size > 0; size /= 2 {
			s.cut(size)
			s.zero(size)
		}
		s.lower()
	}
}

// weight is what shrinking makes smaller.
func weight(list []uint32) int {
	sum := 16 * len(list)
	for _, v := range list {
		sum += int(v)
	}
	return sum
}

// cut takes out pieces of a size.
func (s *shrinker) cut(size int) {
	for at := len(s.best) - size; at >= 0 && s.tries > 0; at -= size {
		if at+size > len(s.best) {
			continue
		}
		s.try(slices.Concat(s.best[:at], s.best[at+size:]))
	}
}

// zero makes pieces of a size harmless.
func (s *shrinker) zero(size int) {
	for at := len(s.best) - size; at >= 0 && s.tries > 0; at -= size {
		if at+size > len(s.best) || !slices.ContainsFunc(s.best[at:at+size], func(v uint32) bool { return v != 0 }) {
			continue
		}
		list := slices.Clone(s.best)
		clear(list[at : at+size])
		s.try(list)
	}
}

// lower makes single numbers smaller.
func (s *shrinker) lower() {
	for at := 0; at < len(s.best) && s.tries > 0; at++ {
		for at < len(s.best) && s.best[at] > 0 {
			list := slices.Clone(s.best)
			list[at] /= 2
			if !s.try(list) {
				break
			}
		}
	}
}

var _ Stepper = (*machine.Machine)(nil)

// Tail returns the last lines of a history.
func Tail(history string, lines int) string {
	all := strings.SplitAfter(history, "\n")
	return strings.Join(all[max(0, len(all)-lines-1):], "")
}
