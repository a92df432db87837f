package file

import (
	"fmt"
	"time"

	"github.com/semel-go/semel"
)

// Format says what a line becomes.
type Format uint8

// The formats.
const (
	// CloudEvents: a line is an event in the structured JSON format of
	// CloudEvents 1.0. Its attributes become headers, ce- before their names;
	// data becomes the body as its raw JSON bytes (a string keeps its
	// quotes), data_base64 decoded. An attribute of a wrong type is
	// malformed, and so is an event without type or specversion, with another
	// specversion than 1.0, or with a time that is none of RFC 3339; one without
	// id or source lacks its identity. The default.
	CloudEvents Format = iota
	// Envelope: a line is {"key": "…", "headers": {"name": "value"}, "body": …}.
	// Each of the three may be missing; any other member is malformed. The
	// body is the raw JSON bytes of its value: a string keeps its quotes.
	Envelope
	// JSON: the line itself is the body, byte for byte.
	JSON
)

// The headers that the source itself adds to a delivery it refuses.
const (
	// HeaderLength is the length in bytes, in decimal digits, of a line that
	// is too large.
	HeaderLength = semel.HeaderLength
	// HeaderDetail says in English what is wrong with the line. It carries
	// nothing of the line's values.
	HeaderDetail = "semel-detail"
)

// Defaults and limits.
const (
	// DefaultMaxLine is the default of Options.MaxLine: 16 MiB.
	DefaultMaxLine = 16 << 20
	// DefaultPoll is the default of Options.Poll.
	DefaultPoll = 200 * time.Millisecond
	// kept is how much is kept of a line that is too large.
	kept = 64 << 10
)

// Options say how to read. The zero value of a field is its default.
type Options struct {
	// Format is CloudEvents unless set.
	Format Format
	// Follow goes on at the end of the file and waits for more, instead of
	// ending. A Stream ends with its reader whatever Follow says.
	Follow bool
	// MaxLine is the longest line in bytes, without its line end, that is read
	// as a message; default 16 MiB, at least 64 KiB. So much memory is used at
	// most for a line that does not end.
	MaxLine int
	// Poll is how often a followed file is looked at for more; default 200 ms.
	Poll time.Duration
	// Lane is the name of the lane and of its position in the store; the
	// default is the path as it was given, cleaned, or "stdin". Renaming it
	// reads the file from its start.
	Lane string
	// Notice, when set, is told in a sentence what an operator should know:
	// the file is another one, it was truncated, a position could not be
	// saved. It is called from whoever calls the source and must not block.
	Notice func(string)
}

// withDefaults fills in what is not set and reports what is out of range.
func (o Options) withDefaults(lane string) (Options, error) {
	if o.MaxLine == 0 {
		o.MaxLine = DefaultMaxLine
	}
	if o.Poll == 0 {
		o.Poll = DefaultPoll
	}
	if o.Lane == "" {
		o.Lane = lane
	}
	if o.Notice == nil {
		o.Notice = func(string) {}
	}
	switch {
	case o.Format > JSON:
		return o, fmt.Errorf("file %s: format %d is unknown; use CloudEvents, Envelope or JSON", lane, o.Format)
	case o.MaxLine < kept:
		return o, fmt.Errorf("file %s: a longest line of %d bytes is too small; use at least %d", lane, o.MaxLine, kept)
	case o.Poll < 0:
		return o, fmt.Errorf("file %s: a poll interval of %v is negative; use a positive one", lane, o.Poll)
	}
	return o, nil
}
