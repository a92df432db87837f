package simulator

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/chance"
	"github.com/semel-go/semel/internal/simulator/trace"
)

func TestEveryLawThatTheCheckerNamesIsCounted(t *testing.T) {
	t.Run("trap_T107_a_law_without_a_counter_could_be_tested_by_nothing", func(t *testing.T) {
		files, err := filepath.Glob("*.go")
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		named := regexp.MustCompile(`broke\("([^"]+)"`)
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, law := range named.FindAllStringSubmatch(string(text), -1) {
				aboutTheWorld := slices.Contains([]string{"protocol", "liveness", "panic", "world"}, law[1])
				if !aboutTheWorld && !slices.Contains(trace.Laws(), law[1]) {
					t.Errorf("%s names %q, which is not among what a long row must meet", file, law[1])
				}
			}
		}
	})
}

func TestASeedGivesTheSameHistoryByteForByte(t *testing.T) {
	other := Run(99, Real, true).History
	for seed := uint64(1); seed <= 20; seed++ {
		first, second := Run(seed, Real, true).History, Run(seed, Real, true).History
		if first != second {
			t.Errorf("seed %d does not give the same history twice", seed)
		}
		if first == other || len(first) < 100 {
			t.Errorf("seed %d has no history of its own", seed)
		}
	}
}

func TestAListOfChoicesGivesTheHistoryOfItsSeed(t *testing.T) {
	r := Run(5, Real, true)
	again := simulate(chance.FromList(r.choices), Real, true)
	if r.History != again.History {
		t.Error("the recorded choices give another history")
	}
}

func TestWithoutChoicesNothingGoesWrong(t *testing.T) {
	r := simulate(chance.FromList(nil), Real, false)
	if r.Broken != nil || r.Faults != 0 || r.Lives != 1 {
		t.Errorf("%v, %d faults, %d lives", r.Broken, r.Faults, r.Lives)
	}
}

func TestAFailingSeedShrinks(t *testing.T) {
	maker := sabotaged(func(s *spoiler, a machine.Action) []machine.Action {
		if r, ok := a.(machine.Rollback); ok {
			return []machine.Action{machine.Commit{Flight: r.Flight}}
		}
		return []machine.Action{a}
	})
	seed, long := uint64(201), Result{}
	for ; long.Broken == nil; seed++ {
		if seed > 300 {
			t.Fatal("a committed failure is not found")
		}
		long = Run(seed, maker, false)
	}
	short, size := Shrink(seed-1, maker, 500)
	if short.Broken == nil || !short.Broken.Like(long.Broken) {
		t.Fatalf("the short form breaks %v, the seed %v", short.Broken, long.Broken)
	}
	if size*4 > len(long.choices) || strings.Count(short.History, "\n") > 30 {
		t.Errorf("%d of %d decisions are left, and the history is\n%s", size, len(long.choices), short.History)
	}
}

// spoiler is a machine that changes its actions before they are carried out.
type spoiler struct {
	*machine.Machine
	spoil func(*spoiler, machine.Action) []machine.Action
	now   machine.Time
	fresh map[*machine.Flight][]int
}

func (s *spoiler) Step(e machine.Event, now machine.Time) []machine.Action {
	s.now = now
	var spoiled []machine.Action
	for _, a := range s.Machine.Step(e, now) {
		if r, ok := a.(machine.Run); ok {
			s.fresh[r.Flight] = slices.Clone(r.Fresh)
		}
		spoiled = append(spoiled, s.spoil(s, a)...)
	}
	return spoiled
}

func sabotaged(spoil func(*spoiler, machine.Action) []machine.Action) Maker {
	return func(c machine.Config) Stepper {
		return &spoiler{Machine: machine.New(c), spoil: spoil, fresh: map[*machine.Flight][]int{}}
	}
}

func TestSpinningIsMeasuredByTheLife(t *testing.T) {
	t.Run("law_11_a_long_history_of_many_lives_does_not_spin_and_a_long_life_does", func(t *testing.T) {
		const most = 1_000
		long, spins := 0, 0
		for seed := range uint64(250) {
			w := newWorld(chance.FromSeed(seed+1), Real)
			w.mostSteps = most
			switch r := w.runToEnd(); {
			case r.Broken == nil && r.Steps > most:
				long++
			case r.Broken != nil && strings.HasPrefix(r.Broken.Text, "it spins: 1001 steps of one life"):
				spins++
			case r.Broken != nil:
				t.Errorf("seed %d breaks %v", seed+1, r.Broken)
			}
		}
		if long == 0 || spins == 0 {
			t.Errorf("%d histories exceed the limit of a life, %d lives do; both should occur", long, spins)
		}
	})
}
