package operate

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// StreamFilter chooses streams. Zero fields choose all.
type StreamFilter struct {
	Consumer string
	// Source is nil for streams of any, which may be the empty one.
	Source *string
	// Stream is a name, or base64: and a name that cannot be typed.
	Stream string
	// Gaps chooses those in which rows wait for an earlier version.
	Gaps bool
}

// mostStreams bounds what is held in memory.
const mostStreams = 1_000_000

// base64Prefix begins the name of a stream that is no text, as people see and type it.
const base64Prefix = "base64:"

// StreamsOf returns the streams that the filter chooses.
func (b Box) StreamsOf(ctx context.Context, f StreamFilter) ([]contract.StoredStream, error) {
	found, err := b.streamsNamed(ctx, f, f.Stream)
	if encoded, is := strings.CutPrefix(f.Stream, base64Prefix); err == nil && len(found) == 0 && is {
		if name, wrong := base64.StdEncoding.DecodeString(encoded); wrong == nil && len(name) > 0 {
			return b.streamsNamed(ctx, f, string(name))
		}
	}
	return found, err
}

func (b Box) streamsNamed(ctx context.Context, f StreamFilter, name string) ([]contract.StoredStream, error) {
	if b.Streams == nil {
		return nil, fmt.Errorf("store %s keeps no streams, so that no message in it waits for an earlier version: %w", b.Store, semel.ErrUnsupported)
	}
	all, err := b.Streams.Streams(ctx, contract.StreamFilter{Consumer: f.Consumer, Stream: name, Gaps: f.Gaps, Limit: mostStreams})
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", b.Store, err)
	}
	return slices.DeleteFunc(all, func(s contract.StoredStream) bool { return f.Source != nil && s.Source != *f.Source }), nil
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
func NewStreamView(store string, s contract.StoredStream) StreamView {
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
	Rows []View `json:"rows"`
}

// open are the states of rows that are not done.
func open() []contract.RowState {
	return []contract.RowState{contract.StateReceived, contract.StateInProgress, contract.StateFailedRetryable, contract.StateBlocked,
		contract.StateParked, contract.StateDeadLettered}
}

// Stream returns a stream with its rows.
func (b Box) Stream(ctx context.Context, s contract.StoredStream) (StreamDetail, error) {
	detail := StreamDetail{StreamView: NewStreamView(b.Store, s), Rows: []View{}}
	for r, err := range b.Rows(ctx, contract.RowFilter{Consumer: s.Consumer, States: open()}) {
		if err != nil {
			return detail, err
		}
		if r.Version > 0 && r.Stream == s.Name && r.Key.Source == s.Source {
			detail.Rows = append(detail.Rows, NewView(b.Store, r))
		}
	}
	slices.SortStableFunc(detail.Rows, func(x, y View) int { return cmp.Compare(x.Version, y.Version) })
	return detail, nil
}
