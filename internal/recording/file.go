package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"runtime/debug"
	"time"

	"github.com/semel-go/semel/internal/machine"
)

const formatVersion = 1

// begins is the start of every recording, before the version of its format.
const begins = `{"semel_recording":`

// Header is the first line of a recording file.
type Header struct {
	Form int `json:"semel_recording"`
	// Consumer is the name of the consumer.
	Consumer string `json:"consumer"`
	// Build identifies the program that made the recording.
	Build Build `json:"build"`
	// Began is the time when the machine began. The recording contains the steps between From and Until. Why is the
	// reason for writing the recording.
	Began time.Time `json:"began"`
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	Why   string    `json:"why"`
	// IDs means that identities are recorded unchanged and not as hashes.
	IDs bool `json:"ids"`
	// Config is the configuration of the machine.
	Config machine.Config `json:"config"`
}

// sum is the last line of a recording file, with the CRC-32 checksum of all earlier lines.
type sum struct {
	CRC32 uint32 `json:"crc32"`
}

// Build identifies a program.
type Build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Changed  bool   `json:"changed,omitempty"`
	Go       string `json:"go"`
}

func (b Build) String() string {
	text := b.Version
	if b.Revision != "" {
		text += " of revision " + b.Revision
	}
	if b.Changed {
		text += " with changes"
	}
	return text + ", " + b.Go
}

// ThisBuild returns the build of the current process.
func ThisBuild() Build {
	b := Build{Version: "(devel)"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Changed = s.Value == "true"
		}
	}
	return b
}

// ErrNothing is returned by Write if the consumer has not run yet.
var ErrNothing = errors.New("nothing is recorded yet")

// Write writes the current recording. The parameter why is the reason for the recording. While Write runs, the machine
// continues its work.
func (r *Recorder) Write(w io.Writer, why string) error {
	r.mutex.Lock()
	t := r.tape
	r.mutex.Unlock()
	if t == nil {
		return ErrNothing
	}
	h, lines := t.copy(why, r.hide.ids)
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	out := append(append(head, '\n'), lines...)
	end, _ := json.Marshal(sum{crc32.ChecksumIEEE(out)})
	_, err = w.Write(append(append(out, end...), '\n'))
	return err
}

// copy returns the header and the lines of the current recording.
func (t *Tape) copy(why string, ids bool) (Header, []byte) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	oldest := &t.ring[(t.current+segments+1-t.used)%segments]
	return Header{
		Form: formatVersion, Consumer: t.name, Build: ThisBuild(), Began: t.began, From: t.began.Add(oldest.snapshotTime), Until: t.began.Add(t.last),
		Why: why, IDs: ids, Config: t.config,
	}, t.lines()
}

// The errors of Read.
var (
	ErrNoRecording = errors.New("this is not a recording of semel")
	ErrNewerForm   = errors.New("this recording has a newer format: read it with the release that wrote it, or a newer one")
	ErrDamaged     = errors.New("the recording is damaged: it is cut short, or a byte of it was changed")
)

// File is a recording that Read has read.
type File struct {
	Header
	lines []byte
}

// Read reads a recording.
func Read(r io.Reader) (*File, error) {
	all, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	rest, ours := bytes.CutPrefix(all, []byte(begins))
	switch {
	case !ours:
		return nil, ErrNoRecording
	case !bytes.HasPrefix(rest, []byte("1,")):
		return nil, ErrNewerForm
	}
	end := bytes.LastIndexByte(bytes.TrimSuffix(all, []byte("\n")), '\n') + 1
	var want sum
	f := &File{}
	head, lines, _ := bytes.Cut(all[:end], []byte("\n"))
	if err := errors.Join(json.Unmarshal(all[end:], &want), json.Unmarshal(head, &f.Header)); err != nil || want.CRC32 != crc32.ChecksumIEEE(all[:end]) {
		return nil, ErrDamaged
	}
	f.lines = lines
	return f, nil
}
