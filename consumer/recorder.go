package consumer

import (
	"cmp"
	"io"
	"sync"

	"github.com/semel-go/semel/internal/recording"
)

// Recorder keeps the last events and decisions of a consumer's engine in bounded memory, so that the steps of
// a run that hangs or fails can be replayed (docs/internals/recorder.md). Set the address of a Recorder as
// Config.Recorder of one consumer. The Recorder contains the consumer's last run. A Recorder stores no
// content of messages, and no texts of errors. Write may be called at any time, from any goroutine. The
// fields must not change after the first run begins.
type Recorder struct {
	// Size is the approximate size of the recording in bytes, 64 KiB or more; default 8 MiB. In a recording, a message
	// takes about 260 bytes. In addition, the recording has up to four copies of the engine's state, with about 300
	// bytes for each message in memory.
	Size int64
	// IDs records identities, sources, streams and the reasons of handlers unchanged, so that a message can be found in
	// a recording. If IDs is false, identities and so on are left out, or hashed with a seed that the recording does
	// not contain.
	IDs bool
	// Broken, if set, is called the first time that the engine detects a violation of its guarantees. The parameter law
	// describes the violated guarantee. Broken may call Write. The engine waits until Broken returns.
	Broken func(law string)

	once sync.Once
	kept *recording.Recorder
}

// Default and minimum size of a recording.
const (
	usualRecording = 8 << 20
	leastRecording = 64 << 10
)

func (r *Recorder) recording() *recording.Recorder {
	r.once.Do(func() {
		r.kept = recording.New(int(max(cmp.Or(r.Size, usualRecording), leastRecording)), r.IDs)
		r.kept.Broken = r.Broken
	})
	return r.kept
}

// Write writes the recorded events and actions as lines of JSON. Write also writes the parameter why as the reason for
// the recording. Write returns an error if the consumer has not run yet, or if writing to w fails.
func (r *Recorder) Write(w io.Writer, why string) error { return r.recording().Write(w, why) }
