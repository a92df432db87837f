package operate

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// StreamFilter chooses streams. Zero fields choose all.
type StreamFilter struct {
	Consumer string
	// Source is nil for streams of any, which may be the empty one.
	Source *string
	// Stream is a name, also as it is printed where it cannot be typed: with escapes, or
	// as base64: and what it is in base64.
	Stream string
	// Gaps chooses those in which rows wait for an earlier version.
	Gaps bool
}

// mostStreams bounds what is held in memory.
const mostStreams = 1_000_000

// base64Prefix begins the name of a stream that is no text, as people see and type it.
const base64Prefix = "base64:"

// StreamsOf returns the streams that the filter chooses.
func (b Box) StreamsOf(ctx context.Context, f StreamFilter) ([]admin.StoredStream, error) {
	found, err := b.streamsNamed(ctx, f, f.Stream)
	if name := typed(f.Stream); err == nil && len(found) == 0 && name != "" {
		return b.streamsNamed(ctx, f, name)
	}
	return found, err
}

// typed is the name that was typed as it is printed, in base64 or with escapes; empty
// if it was typed in neither way.
func typed(name string) string {
	if encoded, is := strings.CutPrefix(name, base64Prefix); is {
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			return string(decoded)
		}
		return ""
	}
	if !strings.Contains(name, `\`) {
		return ""
	}
	plain, _ := strconv.Unquote(`"` + strings.ReplaceAll(name, `"`, `\"`) + `"`) // empty where it is none
	return plain
}

func (b Box) streamsNamed(ctx context.Context, f StreamFilter, name string) ([]admin.StoredStream, error) {
	if b.Streams == nil {
		return nil, fmt.Errorf("store %s keeps no streams, so that no message in it waits for an earlier version: %w", b.Store, semel.ErrUnsupported)
	}
	all, err := b.Streams.Streams(ctx, admin.StreamFilter{Consumer: f.Consumer, Stream: name, Gaps: f.Gaps, Limit: mostStreams})
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", b.Store, err)
	}
	return slices.DeleteFunc(all, func(s admin.StoredStream) bool { return f.Source != nil && s.Source != *f.Source }), nil
}

// StreamView is a stream as people and scripts see it.
type StreamView struct {
	Store        string `json:"store"`
	Consumer     string `json:"consumer"`
	Source       string `json:"source"`
	Stream       string `json:"stream"`
	StreamBase64 string `json:"stream_base64,omitempty"`
	// Last is the last version that took effect or was skipped.
	Last int64 `json:"last_version"`
	// First is the smallest version that waits, Blocked how many rows do, Oldest when
	// the first of them was received.
	First   int64      `json:"first_blocked,omitempty"`
	Blocked int64      `json:"blocked"`
	Oldest  *time.Time `json:"oldest_received_at,omitempty"`
}

// NewStreamView shows a stream.
func NewStreamView(store string, s admin.StoredStream) StreamView {
	v := StreamView{Store: store, Consumer: s.Consumer, Source: s.Source, Last: s.Last, First: s.First, Blocked: s.Blocked, Oldest: given(s.Oldest)}
	v.Stream, v.StreamBase64 = text(s.Name)
	return v
}

// Name is the stream's, in base64 if it is no text.
func (v StreamView) Name() string { return nameOf(v.Stream, v.StreamBase64) }

func nameOf(plain, encoded string) string {
	if encoded != "" {
		return base64Prefix + encoded
	}
	return plain
}

// StreamDetail is a stream with its rows that are not done, by version.
type StreamDetail struct {
	StreamView
	// Missing are the first versions before the first that waits of which there is no
	// row.
	Missing []Span `json:"missing"`
	Rows    []View `json:"rows"`
	// More says that there are rows behind these.
	More bool `json:"more"`
}

// Span are versions from one to another.
type Span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// open are the states of rows that are not done.
func open() []store.RowState {
	return []store.RowState{store.StateReceived, store.StateInProgress, store.StateFailedRetryable, store.StateBlocked,
		store.StateParked, store.StateDeadLettered}
}

// Stream returns a stream with its first rows; a limit of 0 is none.
func (b Box) Stream(ctx context.Context, s admin.StoredStream, limit int) (StreamDetail, error) {
	detail := StreamDetail{StreamView: NewStreamView(b.Store, s), Missing: []Span{}, Rows: []View{}}
	f := rowsOf(s, 0, 0)
	if limit > 0 {
		f.Limit = limit + 1 // whether there are more
	}
	for r, err := range b.Rows(ctx, f) {
		if err != nil {
			return detail, err
		}
		if detail.More = limit > 0 && len(detail.Rows) == limit; detail.More {
			break
		}
		detail.Rows = append(detail.Rows, NewView(b.Store, r))
	}
	var err error
	detail.Missing, err = b.missing(ctx, s)
	return detail, err
}

// rowsOf chooses the rows of a stream that are not done and hold versions between two;
// 0 bounds nothing.
func rowsOf(s admin.StoredStream, from, to int64) store.RowFilter {
	return store.RowFilter{Consumer: s.Consumer, States: open(), Stream: &store.StreamRows{Source: s.Source, Name: s.Name, From: max(from, 1), To: to}}
}

const (
	// mostMissing is how many spans of versions are named.
	mostMissing = 6
	// mostHeld is how many rows are read to find them.
	mostHeld = 10_000
)

// missing are the first versions before the first that waits of which there is no row.
func (b Box) missing(ctx context.Context, s admin.StoredStream) ([]Span, error) {
	spans, next, read := []Span{}, s.Last+1, 0
	if s.Blocked == 0 || next >= s.First {
		return spans, nil
	}
	for r, err := range b.Rows(ctx, rowsOf(s, next, s.First-1)) {
		if err != nil {
			return spans, err
		}
		if r.Version > next {
			spans = append(spans, Span{next, r.Version - 1})
		}
		next = max(next, r.Version+1)
		if read++; len(spans) == mostMissing || read == mostHeld {
			return spans, nil
		}
	}
	if next < s.First {
		spans = append(spans, Span{next, s.First - 1})
	}
	return spans, nil
}
