package operate

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// Standing is the status of a dead letter of a topic in the store of its consumer.
type Standing string

// The standings.
const (
	// StandsAside: its row is parked or dead-lettered.
	StandsAside Standing = "parked or dead"
	StandsDue   Standing = "waiting"
	StandsDone  Standing = "applied"
	// StandsClosed: a person, or the consumer, discarded it.
	StandsClosed Standing = "discarded"
	// StandsOther: another content of its identity has taken effect, or is stored.
	StandsOther Standing = "conflict"
	// StandsUnknown: the store has no row and no marker of its identity.
	StandsUnknown Standing = "unknown here"
	// StandsNameless: it has no identity or fingerprint, so it is unknown whether it took effect.
	StandsNameless Standing = "no identity"
	// StandsForeign: another consumer wrote it, or another program.
	StandsForeign Standing = "foreign"
	// StandsCut: it was truncated when it was written to the topic, and no row has the complete message.
	StandsCut Standing = "cut"
)

// TopicLetter is a dead letter of a topic, joined with its row and marker.
type TopicLetter struct {
	// Place is its topic, partition and offset.
	Place    string       `json:"place"`
	Stands   Standing     `json:"stands"`
	Row      int64        `json:"row,omitempty"`
	Consumer string       `json:"consumer"`
	Source   string       `json:"source,omitempty"`
	ID       string       `json:"id,omitempty"`
	IDBase64 string       `json:"id_base64,omitempty"`
	Reason   semel.Reason `json:"reason,omitempty"`
	Error    string       `json:"error,omitempty"`
	Attempts int          `json:"attempts"`
	Written  time.Time    `json:"written_at"`
	Cut      bool         `json:"cut,omitempty"`
	// From is the place of the original record.
	From string `json:"from,omitempty"`
	// Why adds details to Stands.
	Why string `json:"why,omitempty"`

	key      semel.Key
	print    semel.Fingerprint
	at       time.Time       // when the original record was sent
	delivery source.Delivery // only if Stands is StandsUnknown
}

// Sent returns when the original record was sent, if known.
func (l TopicLetter) Sent() time.Time { return l.at }

// Origin returns the place of the original record of an unknown dead letter.
func (l TopicLetter) Origin() (topic string, partition int32, offset int64) {
	m := l.delivery.Message
	return m.Topic, m.Origin.Partition, m.Origin.Offset
}

// OfAnother reports whether the dead letter belongs to another consumer.
func (l TopicLetter) OfAnother() bool { return l.Stands == StandsForeign && l.Consumer != "" }

// Joiner joins dead letters of a consumer with their rows and markers.
type Joiner struct {
	Box      Box
	Consumer string
	// Kept is the name under which the consumer's records are stored: that of its active generation.
	Kept string
	// Config has the selectors of identity and fingerprint.
	Config consumer.Config
}

// Join matches a dead-letter record with its row and marker. A record without a match gets a status
// that says so. Errors come from the store only.
func (j Joiner) Join(ctx context.Context, from kafka.Letter) (TopicLetter, error) {
	m := from.Delivery.Message
	l := TopicLetter{
		Place: fmt.Sprintf("%s/%d/%d", from.Topic, from.Partition, from.Offset), Consumer: from.Consumer, Reason: from.Reason,
		Error: from.Error, Attempts: from.Attempts, Written: from.WrittenAt, Cut: from.Cut, at: m.Origin.Time(),
	}
	if l.at.IsZero() {
		l.at = from.WrittenAt
	}
	of, _ := admin.GenerationOf(from.Consumer)
	switch {
	case from.Foreign:
		l.Consumer = ""
		l.Stands, l.Why = StandsForeign, "the headers of a dead letter are missing or empty"
		return l, nil
	case of != j.Consumer:
		l.Stands, l.Why = StandsForeign, fmt.Sprintf("it belongs to consumer %s", from.Consumer)
		return l, nil
	}
	l.From = fmt.Sprintf("%s/%d/%d", m.Topic, m.Origin.Partition, m.Origin.Offset)
	if !from.Cut && from.Delivery.Refused != "" {
		l.Stands, l.Why = StandsNameless, string(from.Delivery.Refused)+": "+from.Delivery.Detail
		return l, nil
	}
	source, id, err := j.Config.Identity.Identify(m)
	switch {
	case err != nil && from.Cut:
		l.Stands, l.Why = StandsCut, "it was truncated, and its identity was in the missing part"
		return l, nil
	case err != nil:
		l.Stands, l.Why = StandsNameless, err.Error()
		return l, nil
	}
	l.key = semel.Key{Consumer: cmp.Or(j.Kept, j.Consumer), Source: source, ID: id}
	l.Source, l.delivery = source, from.Delivery
	l.ID, l.IDBase64 = text(id)
	if j.Config.Fingerprint != nil && !from.Cut {
		if l.print, err = j.Config.Fingerprint.Fingerprint(m); err != nil {
			l.Stands, l.Why = StandsNameless, "no fingerprint: "+err.Error()
			return l, nil
		}
	}
	return j.stand(ctx, l)
}

// stand looks up the identity of a dead letter in the store.
func (j Joiner) stand(ctx context.Context, l TopicLetter) (TopicLetter, error) {
	marker, marked, err := j.Box.Markers.Marker(ctx, l.key)
	if err != nil {
		return l, fmt.Errorf("store %s: dead letter %s: %w", j.Box.Store, l.Place, err)
	}
	row, others, err := j.rowOf(ctx, l)
	if err != nil {
		return l, err
	}
	switch {
	case row != nil:
		l.Row = row.Number
		l.Stands = standingOf(row.State.Outcome())
		if l.Stands == StandsAside && marked && row.Fingerprint.Conflicts(marker.Fingerprint) && (marker.Outcome == store.Applied || marker.Outcome == store.Waiting) {
			l.Stands = StandsOther
		}
	case marked && l.print.Conflicts(marker.Fingerprint), !marked && others:
		l.Stands, l.Why = StandsOther, "another content of this identity is "+outcomes[marker.Outcome]
		if !marked {
			l.Why = "the store has another content of this identity"
		}
	case marked:
		l.Stands = standingOf(marker.Outcome)
	case l.Cut:
		l.Stands, l.Why = StandsCut, "it was truncated, and the store has no row with the complete message"
	default:
		l.Stands = StandsUnknown
		return l, nil
	}
	l.delivery = source.Delivery{} // no longer needed, and possibly large
	return l, nil
}

func standingOf(o store.Outcome) Standing {
	switch o {
	case store.Applied:
		return StandsDone
	case store.Waiting:
		return StandsDue
	case store.Discarded:
		return StandsClosed
	}
	return StandsAside
}

// rowOf returns the row with the dead letter's content; others reports that the identity has a row
// with another content.
func (j Joiner) rowOf(ctx context.Context, l TopicLetter) (found *store.StoredRow, others bool, err error) {
	for r, err := range j.Box.Rows(ctx, store.RowFilter{Consumer: l.key.Consumer, IDs: []string{l.key.ID}}) {
		if err != nil {
			return nil, false, err
		}
		switch {
		case r.Key != l.key:
		case l.print.Conflicts(r.Fingerprint), l.print.Version == 0 && r.Conflict:
			others = true
		case found == nil:
			found = &r
		}
	}
	return found, others, nil
}

// TopicDetail shows one dead letter of a topic with, if requested, its headers and payload.
type TopicDetail struct {
	TopicLetter
	Type string `json:"type"`
	Size int    `json:"size"`
	// Headers are those of the original record.
	Headers       []HeaderView `json:"headers,omitempty"`
	Payload       *string      `json:"payload,omitempty"`
	PayloadBase64 string       `json:"payload_base64,omitempty"`
}

// NewTopicDetail returns the view of a dead letter. With payload it includes headers and payload.
func NewTopicDetail(joined TopicLetter, l kafka.Letter, payload bool) TopicDetail {
	m := l.Delivery.Message
	d := TopicDetail{TopicLetter: joined, Type: m.Type(), Size: len(m.Body)}
	if !payload {
		return d
	}
	d.Headers = headersOf(m.Headers)
	d.Payload, d.PayloadBase64 = payloadOf(m.Body)
	return d
}
