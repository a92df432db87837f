// Package recorder keeps what the engine of a consumer heard and decided last, in bounded
// memory, so that a run that is stuck or wrong can be replayed step by step
// (docs/recorder.md).
package recorder

import (
	"io"

	"github.com/semel-go/semel/internal/recording"
)

// Options say what a Recorder keeps.
type Options struct {
	// Size is about how many bytes it takes at most, 64 KiB or more; default 8 MiB. A
	// message takes about 40. What the engine has in hand stands there up to four times,
	// beside that, with about 100 bytes a message.
	Size int64
	// IDs has identities, sources, streams and the reasons of handlers recorded as they are,
	// for who has to find a message in it. Otherwise they are hashed under a seed that is in
	// no recording, or left out.
	IDs bool
	// Broken, when set, is called when the engine breaks one of its laws, the first time:
	// Recorder.Write may be called in it. The engine stands still meanwhile.
	Broken func(law string)
}

// Recorder records the engine of one consumer, that of its last run: give it to it as
// consumer.Config.Recorder. Nothing of a message's content is kept, and of errors only that
// there was one. Its methods may be called at any time, from any goroutine.
type Recorder struct{ recording *recording.Recorder }

// The default size of a recording, and the smallest.
const (
	usual = 8 << 20
	least = 64 << 10
)

// New returns a recorder that has nothing yet.
func New(o Options) *Recorder {
	if o.Size == 0 {
		o.Size = usual
	}
	r := recording.New(int(max(o.Size, least)), o.IDs)
	r.Broken = o.Broken
	return &Recorder{r}
}

// Write writes what is recorded, as a file for Semel's simulator, with a reason for people.
// It fails where the consumer has not run yet, or as w fails.
func (r *Recorder) Write(w io.Writer, why string) error { return r.recording.Write(w, why) }

// Recording is of the engine, which writes there. It is nil of no recorder.
func (r *Recorder) Recording() *recording.Recorder {
	if r == nil {
		return nil
	}
	return r.recording
}
