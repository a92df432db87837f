package shape

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// FaultKind is the kind of a fault.
type FaultKind uint8

// The kinds of faults.
const (
	// Invalid means that the policy is wrong.
	Invalid FaultKind = iota
	// NotYet means that the policy uses a planned key that is not available yet.
	NotYet
	// Unreadable means that the file cannot be read.
	Unreadable
	// Warning means that a setting is valid but probably a mistake. Warnings do not reject the policy.
	Warning
)

// Fault is one error or warning about a policy. A Fault never contains the value of an environment variable.
type Fault struct {
	File         string
	Line, Column int
	Kind         FaultKind
	// Path is the path of the key, such as "consumers.billing.retry.max_delay"; empty for the
	// whole file.
	Path string
	// Reason says what is wrong. Remedy says what to do.
	Reason, Remedy string
}

// String returns the fault on one line, in the format of compiler errors.
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", f.File, f.Line, f.Column)
	if f.Kind == Warning {
		b.WriteString("warning: ")
	}
	if f.Path != "" {
		b.WriteString(shorten(f.Path) + ": ")
	}
	b.WriteString(shorten(f.Reason))
	if f.Remedy != "" {
		b.WriteString("; " + f.Remedy)
	}
	return strings.Join(strings.FieldsFunc(b.String(), isBreak), " ")
}

// longestPart is the maximum length of a printed path or reason, in bytes. A key in the file could have
// megabytes.
const longestPart = 1000

// shorten shortens a long text by removing the middle.
func shorten(text string) string {
	if len(text) <= longestPart {
		return text
	}
	return strings.ToValidUTF8(text[:longestPart/2]+"…"+text[len(text)-longestPart/2:], "")
}

func (f Fault) Error() string { return f.String() }

func isBreak(r rune) bool { return r == '\n' || r == '\r' }

// Position is a place in the file. Lines and columns start at 1.
type Position struct{ Line, Column int }

// Nearest returns the position of path. If path has no position, Nearest returns the position of the closest
// parent.
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

// ComparePlaces orders faults by position in the file.
func ComparePlaces(a, b Fault) int {
	return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
		cmp.Compare(a.Path, b.Path), cmp.Compare(a.Reason, b.Reason))
}

// Sorted returns the faults and warnings, ordered by position.
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

// ReadReason returns the reason why a file could not be read.
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
