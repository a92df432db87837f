package recording_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/recording"
	"github.com/semel-go/semel/internal/simulator"
)

// recorded is a machine of the simulator with a recorder. The recording is replayed when the machine ends,
// and sometimes earlier.
type recorded struct {
	*machine.Machine
	recorder *recording.Recorder
	tape     *recording.Tape
	steps    int
	all      *[]*recorded
	broken   *recording.Broken
}

func (r *recorded) Step(e machine.Event, now machine.Time) []machine.Action {
	r.steps++
	r.tape.Event(e, now)
	actions := r.Machine.Step(e, now)
	if b := r.tape.Actions(actions); b != nil {
		r.broken = b
	}
	return actions
}

// recordingMaker returns a Maker that records every machine of a simulator run. The recording of each machine has
// size bytes.
func recordingMaker(size int, all *[]*recorded) simulator.Maker {
	return func(c machine.Config) simulator.Stepper {
		r := &recorded{Machine: machine.New(c), recorder: recording.New(size, false), all: all}
		r.tape = r.recorder.Begin("orders", r.Machine, c, time.Unix(0, 0))
		*all = append(*all, r)
		return r
	}
}

func written(t *testing.T, r *recording.Recorder) *recording.File {
	t.Helper()
	var b bytes.Buffer
	if err := r.Write(&b, "a test asks"); err != nil {
		t.Fatal(err)
	}
	f, err := recording.Read(&b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSimulatedRunsAreReplayedByteForByte(t *testing.T) {
	t.Run("K14_every_life_of_many_seeds_is_replayed_from_the_midst_to_the_same_decisions", func(t *testing.T) {
		lives, midst, steps := 0, 0, 0
		for seed := uint64(1); seed <= seeds; seed++ {
			var all []*recorded
			if r := simulator.Run(seed, recordingMaker(1<<10, &all), false); r.Broken != nil {
				t.Fatalf("seed %d breaks %v", seed, r.Broken)
			}
			for _, r := range all {
				result, err := written(t, r.recorder).Replay(nil)
				switch {
				case err != nil:
					t.Fatalf("seed %d: %v", seed, err)
				case result.Differs != nil:
					t.Fatalf("seed %d: %+v", seed, *result.Differs)
				case result.Panic != "":
					t.Fatalf("seed %d: %s", seed, result.Panic)
				case r.broken != nil || result.Broken != nil:
					t.Fatalf("seed %d keeps all laws, and is said to break %v, %v", seed, r.broken, result.Broken)
				case result.Load != r.Load():
					t.Fatalf("seed %d: %+v, and replayed %+v", seed, r.Load(), result.Load)
				}
				lives++
				steps += result.Steps
				if result.Steps < r.steps {
					midst++
				}
			}
		}
		t.Logf("%d lives, %d of them from the midst, %d steps", lives, midst, steps)
		if midst < int(seeds)/4 {
			t.Errorf("only %d of %d lives were replayed from the midst", midst, lives)
		}
	})
}

const seeds = 60
