package recording

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
	"runtime/debug"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/machine"
)

// format is the version of the file's form, in its first line.
const format = "semel recording 1\n"

// Header is what a file says before its steps, as JSON on its second line.
type Header struct {
	// Consumer is whose machine it was.
	Consumer string `json:"consumer"`
	// Build is what recorded it.
	Build Build `json:"build"`
	// Began is when the machine began, From and Until what is recorded, Why why it was
	// written.
	Began time.Time `json:"began"`
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	Why   string    `json:"why"`
	// IDs says that identities are recorded as they are.
	IDs bool `json:"ids"`
	// Config is the machine's policy.
	Config machine.Config `json:"config"`
	// Shape is of the machine's parts: a build of another cannot read the pictures.
	Shape string `json:"shape"`
}

// Build names a program.
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

// ThisBuild is the program that runs.
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

// shapeNumber is shape, short.
var shapeNumber = sync.OnceValue(func() string {
	h := fnv.New64a()
	_, _ = io.WriteString(h, shape())
	return fmt.Sprintf("%016x", h.Sum64())
})

// piece is a segment in the file.
type piece struct{ Picture, Steps []byte }

// ErrNothing is returned by Write where no machine has begun.
var ErrNothing = errors.New("nothing is recorded yet")

// Write writes what is recorded, with the reason. The machine goes on meanwhile.
func (r *Recorder) Write(w io.Writer, why string) error {
	r.mutex.Lock()
	t := r.tape
	r.mutex.Unlock()
	if t == nil {
		return ErrNothing
	}
	h, all := t.copy(why, r.hide.ids)
	return write(w, h, all)
}

// copy is what is recorded now.
func (t *Tape) copy(why string, ids bool) (Header, []piece) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	all := t.pieces()
	oldest := &t.ring[(t.current+segments+1-t.used)%segments]
	return Header{
		Consumer: t.name, Build: ThisBuild(), Began: t.began, From: t.began.Add(oldest.began), Until: t.began.Add(t.last),
		Why: why, IDs: ids, Config: t.config, Shape: shapeNumber(),
	}, all
}

func write(w io.Writer, h Header, all []piece) error {
	head, err := json.Marshal(h)
	if err != nil {
		return err
	}
	out := append([]byte(format), head...)
	out = append(out, '\n')
	for _, p := range all {
		out = binary.AppendUvarint(out, uint64(len(p.Picture)))
		out = binary.AppendUvarint(out, uint64(len(p.Steps)))
		out = append(append(out, p.Picture...), p.Steps...)
	}
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	_, err = w.Write(out)
	return err
}

// Read errors.
var (
	ErrNoRecording = errors.New("this is no recording of semel")
	ErrNewerForm   = errors.New("this recording is of a later form: read it with the release that wrote it, or a later one")
	ErrDamaged     = errors.New("the recording is damaged: it is cut short, or a byte of it was changed")
)

// File is a recording that was read.
type File struct {
	Header
	pieces []piece
}

// Read reads a recording.
func Read(r io.Reader) (*File, error) {
	all, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	rest, ours := bytes.CutPrefix(all, []byte(format))
	switch {
	case !ours && bytes.HasPrefix(all, []byte("semel recording ")):
		return nil, ErrNewerForm
	case !ours:
		return nil, ErrNoRecording
	case len(rest) < 4 || crc32.ChecksumIEEE(all[:len(all)-4]) != binary.BigEndian.Uint32(all[len(all)-4:]):
		return nil, ErrDamaged
	}
	head, body, _ := bytes.Cut(rest[:len(rest)-4], []byte("\n"))
	f := &File{}
	if err := json.Unmarshal(head, &f.Header); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	for in := (reader{in: body}); len(in.in) > 0; {
		picture, steps := in.uint(), in.uint()
		if size := uint64(len(in.in)); picture > size || steps > size-picture {
			return nil, ErrDamaged
		}
		f.pieces = append(f.pieces, piece{Picture: in.take(int(picture)), Steps: in.take(int(steps))})
	}
	if len(f.pieces) == 0 {
		return nil, ErrDamaged
	}
	return f, nil
}
