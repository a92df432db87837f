package shape

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// FaultKind says what sort of fault it is.
type FaultKind uint8

// The kinds of faults.
const (
	// Invalid: the policy is wrong.
	Invalid FaultKind = iota
	// NotYet: the policy asks for something known that is not available yet.
	NotYet
	// Unreadable: the file cannot be read.
	Unreadable
	// Warning: allowed and probably not meant. It refuses nothing.
	Warning
)

// Fault is one thing that is wrong with a policy. It never carries the value
// of an environment variable.
type Fault struct {
	File         string
	Line, Column int
	Kind         FaultKind
	// Path is the key's, as "consumers.billing.retry.max_delay"; empty for the
	// whole file.
	Path string
	// Reason says what is wrong, Remedy what to do.
	Reason, Remedy string
}

// String is the fault as compilers print theirs, on one line.
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", f.File, f.Line, f.Column)
	if f.Kind == Warning {
		b.WriteString("warning: ")
	}
	if f.Path != "" {
		b.WriteString(short(f.Path) + ": ")
	}
	b.WriteString(short(f.Reason))
	if f.Remedy != "" {
		b.WriteString("; " + f.Remedy)
	}
	return strings.Join(strings.FieldsFunc(b.String(), isBreak), " ")
}

// longestPart is how much of a path or a reason is shown, in bytes. They hold
// what the file has, which may be a key of megabytes.
const longestPart = 1000

// short leaves out the middle of a text that nobody would read to its end.
func short(text string) string {
	if len(text) <= longestPart {
		return text
	}
	return strings.ToValidUTF8(text[:longestPart/2]+"…"+text[len(text)-longestPart/2:], "")
}

func (f Fault) Error() string { return f.String() }

func isBreak(r rune) bool { return r == '\n' || r == '\r' }

// Position is a place in the file; lines and columns begin with 1.
type Position struct{ Line, Column int }

// Nearest is the position of path, or of the nearest part above it.
func Nearest(positions map[string]Position, path string) Position {
	for {
		if at, ok := positions[path]; ok {
			return at
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return Position{1, 1}
		}
		path = path[:cut]
	}
}

// ComparePlaces orders faults by their place in the file.
func ComparePlaces(a, b Fault) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
		cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason))
}

// Sorted returns faults and warnings by place.
func (d *Decoder) Sorted() (faults, warnings []Fault) {
	for _, f := range d.faults {
		if f.Kind == Warning {
			warnings = append(warnings, f)
		} else {
			faults = append(faults, f)
		}
	}
	slices.SortFunc(faults, ComparePlaces)
	slices.SortFunc(warnings, ComparePlaces)
	return faults, warnings
}

// ReadReason says why a file could not be read.
func ReadReason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such file"
	case errors.Is(err, fs.ErrPermission):
		return "there is no permission to read the file"
	default:
		return "the file cannot be read: " + err.Error()
	}
}
