package consumer

import (
	"io"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/recording"
)

// RecorderOptions say what a Recorder keeps.
type RecorderOptions struct {
	// Size is about how many bytes it takes at most, 64 KiB or more; default 8 MiB. A
	// message takes about 40. What the engine has in hand stands there up to four times,
	// beside that, with about 100 bytes a message.
	Size int64
	// IDs has identities, sources and streams recorded as they are, for who has to find a
	// message in it. Otherwise they are hashed under a seed that is in no recording.
	IDs bool
	// Broken, when set, is called when the engine breaks one of its laws, the first time:
	// Recorder.Write may be called in it. The engine stands still meanwhile.
	Broken func(law string)
}

// Recorder is a flight recorder: it keeps what the engine of one consumer heard and decided
// last, in bounded memory, so that a run that is stuck or wrong can be replayed step by step
// (docs/recorder.md). Nothing of a message's content is kept, and of errors only that there
// was one. Give it to one consumer, as Config.Recorder. Its methods may be called at any
// time, from any goroutine.
type Recorder struct {
	recording *recording.Recorder
	broken    func(law string)
	telling   sync.Once
}

// usualRecording is the default size of a recording.
const usualRecording = 8 << 20

// leastRecording is the smallest.
const leastRecording = 64 << 10

// NewRecorder returns a recorder that has nothing yet.
func NewRecorder(o RecorderOptions) *Recorder {
	if o.Size == 0 {
		o.Size = usualRecording
	}
	return &Recorder{recording: recording.New(int(max(o.Size, leastRecording)), o.IDs), broken: o.Broken}
}

// Write writes what is recorded, as a file for semel's simulator, with a reason for people.
// It fails where the consumer has not run yet, or as w fails.
func (r *Recorder) Write(w io.Writer, why string) error { return r.recording.Write(w, why) }

// begin records the machine of a run; nil records nothing.
func (r *Recorder) begin(name string, m *machine.Machine, c machine.Config, at time.Time) *recording.Tape {
	if r == nil {
		return nil
	}
	return r.recording.Begin(name, m, c, at)
}

// step is the machine's, recorded.
func (e *engine[Tx]) step(event machine.Event, now machine.Time) []machine.Action {
	if e.recording == nil {
		return e.machine.Step(event, now)
	}
	e.recording.Event(event, now)
	ended := false
	defer func() {
		if !ended { // it panics, and the process with it
			e.config.Recorder.tell("no panic")
		}
	}()
	actions := e.machine.Step(event, now)
	ended = true
	if broken := e.recording.Actions(actions); broken != nil {
		e.config.Logger.Error("the engine has broken a law: please report it, with the recording", "consumer", e.config.public, "law", broken.Law, "how", broken.How)
		e.config.Recorder.tell(broken.Law)
	}
	return actions
}

// tell calls Broken once.
func (r *Recorder) tell(law string) {
	if r.broken != nil {
		r.telling.Do(func() { r.broken(law) })
	}
}
