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

// Standing is the state of a topic's dead letter in the store of the consumer.
type Standing string

// The states of a topic's dead letter.
const (
	// StandsAside means that the row is parked or dead-lettered.
	StandsAside Standing = "parked or dead"
	StandsDue   Standing = "waiting"
	StandsDone  Standing = "applied"
	// StandsClosed means that a person or the consumer discarded the message.
	StandsClosed Standing = "discarded"
	// StandsOther means that another content of the identity was applied or is stored.
	StandsOther Standing = "conflict"
	// StandsUnknown means that the store has neither a row nor a marker for the identity.
	StandsUnknown Standing = "unknown here"
	// StandsNameless means that the record has no identity or no fingerprint. If a record has no identity or no
	// fingerprint, it is unknown whether its message was applied.
	StandsNameless Standing = "no identity"
	// StandsForeign means that another consumer or another program wrote the record.
	StandsForeign Standing = "foreign"
	// StandsCut means that the message was truncated when it was written to the topic, and that no row has
	// the complete message.
	StandsCut Standing = "cut"
)

// TopicLetter is a dead letter in a topic, together with its row and marker.
type TopicLetter struct {
	// Place is the topic, partition and offset of the dead letter.
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
	// From is the topic, partition and offset of the original record.
	From string `json:"from,omitempty"`
	// Why adds details to the field Stands.
	Why string `json:"why,omitempty"`

	key      semel.Key
	print    semel.Fingerprint
	at       time.Time       // the time at which the original record was sent
	delivery source.Delivery // set only if Stands is StandsUnknown
}

// Sent returns the time at which the original record was sent, or zero if unknown.
func (l TopicLetter) Sent() time.Time { return l.at }

// Origin returns the topic, partition and offset of the original record. Call Origin only for a dead letter
// with StandsUnknown.
func (l TopicLetter) Origin() (topic string, partition int32, offset int64) {
	m := l.delivery.Message
	return m.Topic, m.Origin.Partition, m.Origin.Offset
}

// OfAnother reports whether the dead letter belongs to another consumer.
func (l TopicLetter) OfAnother() bool { return l.Stands == StandsForeign && l.Consumer != "" }

// Joiner finds the rows and markers of a consumer's dead letters.
type Joiner struct {
	Box      Box
	Consumer string
	// Kept is the name under which the store keeps the consumer's records. The name contains the active
	// generation.
	Kept string
	// Config has the selectors of identity and fingerprint.
	Config consumer.Config
}

// Join matches a dead-letter record with its row and marker. A record without a match gets the status
// StandsUnknown, StandsNameless, StandsForeign or StandsCut. An error of Join is an error of the store.
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
	return j.lookUp(ctx, l)
}

// lookUp looks up the dead letter's identity in the store.
func (j Joiner) lookUp(ctx context.Context, l TopicLetter) (TopicLetter, error) {
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
	l.delivery = source.Delivery{} // release the memory of the message, which is no longer needed
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

// rowOf returns the row that has the dead letter's content. The result others means that the identity has a
// row with different content.
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

// TopicDetail shows one dead letter of a topic. Headers and payload are included on request.
type TopicDetail struct {
	TopicLetter
	Type string `json:"type"`
	Size int    `json:"size"`
	// Headers are the headers of the original record.
	Headers       []HeaderView `json:"headers,omitempty"`
	Payload       *string      `json:"payload,omitempty"`
	PayloadBase64 string       `json:"payload_base64,omitempty"`
}

// NewTopicDetail returns the view of a dead letter. With payload set, the view includes headers and payload.
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
