package file

import (
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/semelheader"
)

// Format is the format of lines.
type Format uint8

// Formats of lines.
const (
	// CloudEvents, the default, means that each line is an event in the structured JSON format of CloudEvents
	// 1.0. Attributes become headers with the prefix ce-. The body is the raw JSON of data (a string keeps its
	// quotes), or the decoded data_base64. An event is malformed if an attribute has the wrong type, type or
	// specversion is missing, specversion is not 1.0, or time is not RFC 3339. An event without id or source
	// has no identity.
	CloudEvents Format = iota
	// Envelope means that each line is {"key": "…", "headers": {"name": "value"}, "body": …}. The members key, headers
	// and body may be missing; any other member makes the line malformed. The body is the raw JSON of the value: a
	// string keeps its quotes.
	Envelope
	// JSON means that the line is the body, byte for byte.
	JSON
)

// Headers that the source adds to a refused line.
const (
	// HeaderLength is the length of a line that is too long, in bytes, as a decimal number.
	HeaderLength = semelheader.Length
	// HeaderDetail describes in English why the line was refused. The description contains no value of the line.
	HeaderDetail = "semel-detail"
)

// Defaults and limits.
const (
	// DefaultMaxLine is the default of Options.MaxLine: 16 MiB.
	DefaultMaxLine = 16 << 20
	// DefaultPoll is the default of Options.Poll.
	DefaultPoll = 200 * time.Millisecond
	// The number of bytes in the message of a line that is too long.
	kept = 64 << 10
)

// Options configures a Source or Stream. The zero value of a field selects its default.
type Options struct {
	// Format is the format of lines; default CloudEvents.
	Format Format
	// Follow makes a Source wait for more lines at the end of the file. A Stream ignores Follow, and ends when its
	// reader ends.
	Follow bool
	// MaxLine is the longest line in bytes, without the line end; default 16 MiB, at least 64 KiB. A line without an
	// end uses at most MaxLine bytes of memory.
	MaxLine int
	// Poll is the interval at which a followed file is checked for more; default 200 ms.
	Poll time.Duration
	// Lane is the name of the lane and of its position in the store; default the cleaned path, or "stdin". If
	// you change Lane, the file is read from its start.
	Lane string
	// Notice, if not nil, is called with a sentence for operators, for example when the file was replaced or
	// truncated, or when a position could not be saved. Notice is called from the goroutine that uses the
	// source and must not block.
	Notice func(string)
}

// withDefaults sets the defaults, and returns an error for values that are not allowed.
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
		return o, fmt.Errorf("file %s: MaxLine is %d; use at least %d", lane, o.MaxLine, kept)
	case o.Poll < 0:
		return o, fmt.Errorf("file %s: a poll interval of %v is negative; use a positive one", lane, o.Poll)
	}
	return o, nil
}
