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
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/store"
)

// StreamFilter chooses streams. A field with the value zero does not restrict the choice of streams.
type StreamFilter struct {
	Consumer string
	// Source chooses streams of this source; nil chooses all sources. The empty string is the source without
	// a name.
	Source *string
	// Stream is the name of a stream. A name that cannot be typed can be given as printed, with escapes or
	// in base64.
	Stream string
	// Gaps chooses only streams in which rows wait for an earlier version.
	Gaps bool
}

// mostStreams is the maximum number of streams that are read. This maximum bounds memory.
const mostStreams = 1_000_000

// base64Prefix starts the printed form of a stream name that is not text.
const base64Prefix = "base64:"

// StreamsOf returns the streams that the filter chooses.
func (b Box) StreamsOf(ctx context.Context, f StreamFilter) ([]admin.StoredStream, error) {
	found, err := b.streamsNamed(ctx, f, f.Stream)
	if name := decodeName(f.Stream); err == nil && len(found) == 0 && name != "" {
		return b.streamsNamed(ctx, f, name)
	}
	return found, err
}

// decodeName decodes a name that was typed with escapes or in base64. The function returns "" if the
// name has neither escapes nor base64.
func decodeName(name string) string {
	if encoded, is := strings.CutPrefix(name, base64Prefix); is {
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			return string(decoded)
		}
		return ""
	}
	if !strings.Contains(name, `\`) {
		return ""
	}
	plain, _ := strconv.Unquote(`"` + strings.ReplaceAll(name, `"`, `\"`) + `"`) // empty if the name is not a quoted text
	return plain
}

func (b Box) streamsNamed(ctx context.Context, f StreamFilter, name string) ([]admin.StoredStream, error) {
	if b.Streams == nil {
		return nil, fmt.Errorf("store %s keeps no streams, so no message in it waits for an earlier version: %w", b.Store, semel.ErrUnsupported)
	}
	all, err := b.Streams.Streams(ctx, admin.StreamFilter{Consumer: f.Consumer, Stream: name, Gaps: f.Gaps, Limit: mostStreams})
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", b.Store, err)
	}
	return slices.DeleteFunc(all, func(s admin.StoredStream) bool { return f.Source != nil && s.Source != *f.Source }), nil
}

// StreamView shows a stream.
type StreamView struct {
	Store        string `json:"store"`
	Consumer     string `json:"consumer"`
	Source       string `json:"source"`
	Stream       string `json:"stream"`
	StreamBase64 string `json:"stream_base64,omitempty"`
	// Last is the last version that was applied or skipped.
	Last int64 `json:"last_version"`
	// First is the smallest waiting version. Blocked is the number of rows that wait for an earlier version.
	// Oldest is the receive time of the first waiting row.
	First   int64      `json:"first_blocked,omitempty"`
	Blocked int64      `json:"blocked"`
	Oldest  *time.Time `json:"oldest_received_at,omitempty"`
}

// NewStreamView returns the view of a stream.
func NewStreamView(store string, s admin.StoredStream) StreamView {
	v := StreamView{Store: store, Consumer: s.Consumer, Source: s.Source, Last: s.Last, First: s.First, Blocked: s.Blocked, Oldest: timeOrNil(s.Oldest)}
	v.Stream, v.StreamBase64 = text(s.Name)
	return v
}

// Name returns the name of the stream. A name that is not text is returned in base64.
func (v StreamView) Name() string { return nameOf(v.Stream, v.StreamBase64) }

func nameOf(plain, encoded string) string {
	if encoded != "" {
		return base64Prefix + encoded
	}
	return plain
}

// StreamDetail shows a stream with its unfinished rows, ordered by version.
type StreamDetail struct {
	StreamView
	// Missing has the lowest missing versions that are smaller than First, as ranges.
	Missing []Span `json:"missing"`
	Rows    []View `json:"rows"`
	// More reports that the stream has more rows than Rows.
	More bool `json:"more"`
}

// Span is a range of versions, including From and To.
type Span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

func unfinishedStates() []store.RowState {
	return []store.RowState{store.StateReceived, store.StateInProgress, store.StateFailedRetryable, store.StateBlocked,
		store.StateParked, store.StateDeadLettered}
}

// Stream returns a stream with a limited number of rows; the limit 0 means no limit.
func (b Box) Stream(ctx context.Context, s admin.StoredStream, limit int) (StreamDetail, error) {
	detail := StreamDetail{StreamView: NewStreamView(b.Store, s), Missing: []Span{}, Rows: []View{}}
	f := rowsOf(s, 0, 0)
	if limit > 0 {
		f.Limit = limit + 1 // one more row shows whether further rows exist
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
	detail.Missing, err = b.missingVersions(ctx, s)
	return detail, err
}

// rowsOf returns a filter for the unfinished rows of a stream. The versions are not smaller than the
// parameter from and not greater than the parameter to; 0 means no bound.
func rowsOf(s admin.StoredStream, from, to int64) store.RowFilter {
	return store.RowFilter{Consumer: s.Consumer, States: unfinishedStates(), Stream: &versions.Rows{Source: s.Source, Name: s.Name, From: max(from, 1), To: to}}
}

const (
	// mostMissing is the maximum number of missing ranges that are shown.
	mostMissing = 6
	// mostHeld is the maximum number of rows that are read to find missing versions.
	mostHeld = 10_000
)

// missingVersions returns the ranges of versions that have no row and are smaller than the first waiting version.
func (b Box) missingVersions(ctx context.Context, s admin.StoredStream) ([]Span, error) {
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
