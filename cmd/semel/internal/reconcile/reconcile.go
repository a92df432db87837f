package reconcile

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Outcome is the outcome of a message according to the store.
type Outcome uint8

// The outcomes of a message.
const (
	// None means that the identity has no marker.
	None Outcome = iota
	// Applied means that the effect is committed.
	Applied
	// Waiting means that the message was received and has not ended.
	Waiting
	// Aside means that the message is parked, discarded or dead-lettered.
	Aside
)

// OutcomeOf returns the outcome that a marker records.
func OutcomeOf(o store.Outcome) Outcome {
	switch o {
	case store.Applied:
		return Applied
	case store.Waiting:
		return Waiting
	default:
		return Aside
	}
}

// Kind is the kind of a finding.
type Kind string

// The kinds of findings.
const (
	// Missing means that a message was sent, but the identity has no marker.
	Missing Kind = "missing"
	// Doubled means that the effect exists more than once.
	Doubled Kind = "doubled"
	// WithoutEffect means that the marker says applied, but the effect does not exist.
	WithoutEffect Kind = "without effect"
	// Unmarked means that the effect exists, but no marker says applied.
	Unmarked Kind = "unmarked"
	// Unknown means that the marker may have been removed, or that the message has no identity.
	Unknown Kind = "unknown"
)

// Finding is an identity for which message, marker and effect disagree.
type Finding struct {
	Kind    Kind      `json:"what"`
	ID      string    `json:"id"`
	Source  string    `json:"source"`
	Sent    time.Time `json:"sent,omitzero"`
	Effects int       `json:"effects"`
}

// Counts has numbers of identities. An identity that was sent several times counts once. Unusable is the
// number of messages without an identity.
type Counts struct {
	Sent          int64 `json:"sent"`
	Applied       int64 `json:"applied"`
	Waiting       int64 `json:"waiting"`
	Aside         int64 `json:"unapplied"`
	Late          int64 `json:"late"`
	Missing       int64 `json:"missing"`
	Doubled       int64 `json:"doubled"`
	WithoutEffect int64 `json:"without_effect"`
	Unmarked      int64 `json:"unmarked"`
	Unknown       int64 `json:"unknown"`
	Unusable      int64 `json:"unusable"`
	// Skipped is the number of messages that the consumer's filter excludes.
	Skipped int64 `json:"skipped"`
	// Others is the number of ids that have effects although no message was sent.
	Others int64 `json:"others"`
}

// Found returns the number of findings.
func (c Counts) Found() int64 {
	return c.Missing + c.Doubled + c.WithoutEffect + c.Unmarked + c.Unknown + c.Unusable
}

// Comparison compares the messages that are passed to Sent with the effects that are passed to Effect. The
// caller must call Close, which removes temporary files.
type Comparison struct {
	// Marker looks up the marker of an identity.
	Marker func(ctx context.Context, key semel.Key) (admin.StoredMarker, bool, error)
	// Consumer is the stored name of the compared consumer.
	Consumer string
	// Until excuses newer messages: only a message that was sent before Until must have a marker. If Until
	// is zero, all messages must have a marker.
	Until time.Time
	// Kept is the time since which all markers still exist; zero if no marker was removed.
	Kept time.Time
	// Progress is called with the number of messages and effects that were read, and with the completed part
	// of the comparison, from 0 to 1. Progress may be nil.
	Progress func(read, effects int64, compared float64)

	counts  Counts
	spill   *spill
	effects bool
	read    [2]int64 // number of messages and of effects
}

func (c *Comparison) report(compared float64) {
	if c.Progress != nil {
		c.Progress(c.read[0], c.read[1], compared)
	}
}

func (c *Comparison) add(r record) (err error) {
	if c.spill == nil {
		if c.spill, err = newSpill(); err != nil {
			return err
		}
	}
	return c.spill.add(r)
}

// Sent adds sent identities and looks up these identities concurrently. The parameter at has, for each key, the time at
// which the message was sent; zero if unknown.
func (c *Comparison) Sent(ctx context.Context, keys []semel.Key, at []time.Time) error {
	return c.SentAs(ctx, keys, nil, at)
}

// SentAs adds sent identities together with previous identities. A message with a marker under either
// identity is not missing. The slice formers may be nil. An entry of formers without an id means that the
// message has no previous identity.
func (c *Comparison) SentAs(ctx context.Context, keys, formers []semel.Key, at []time.Time) error {
	found, err := c.lookUp(ctx, keys, formers)
	if err != nil {
		return err
	}
	for i, k := range keys {
		r := record{id: k.ID, source: k.Source, found: found[i]}
		if formers != nil && found[i] != Applied { // the identity is looked up again at the end
			r.previousID, r.previousSource = formers[i].ID, formers[i].Source
		}
		if !at[i].IsZero() {
			r.at = at[i].UnixMilli()
		}
		if err := c.add(r); err != nil {
			return err
		}
	}
	c.read[0] += int64(len(keys))
	c.report(0)
	return nil
}

// WithEffects announces that the caller will call Effect for all effects of the sent messages.
func (c *Comparison) WithEffects() { c.effects = true }

// Effect adds one effect to the comparison: an effect of the message with this id. The parameter source is "" if the
// source is unknown.
func (c *Comparison) Effect(id, source string) error {
	if c.read[1]++; c.read[1]%1024 == 0 {
		c.report(0)
	}
	return c.add(record{effect: true, id: id, source: source})
}

// Close removes the temporary files.
func (c *Comparison) Close() error {
	if c.spill == nil {
		return nil
	}
	return c.spill.close()
}

// Compare calls the function each for every finding. All findings of an id are reported together. The order
// of ids is undefined.
func (c *Comparison) Compare(ctx context.Context, each func(Finding) error) (Counts, error) {
	if c.spill == nil {
		return c.counts, nil
	}
	for part := range parts {
		if err := c.compare(ctx, part, each); err != nil {
			return c.counts, err
		}
		c.report(float64(part+1) / parts)
	}
	return c.counts, nil
}

// identity is a sent identity with its outcome.
type identity struct {
	source  string
	found   Outcome
	at      int64
	effects int
	// readUnfinished means that the message had not ended when the comparison read the message. The marker
	// found at the end can be newer than the list of effects.
	readUnfinished bool
	// previous is the previous identity of the message; zero if it has none.
	previous semel.Key
}

// group has the sent identities and the effects of one id.
type group struct {
	sent []identity
	// sourcelessEffects is the number of effects with an unknown source. The field sources has, for each known source,
	// the number of effects with this source.
	sourcelessEffects int
	sources           map[string]int
}

func (c *Comparison) compare(ctx context.Context, part int, each func(Finding) error) error {
	groups := map[string]*group{}
	if err := c.spill.forEach(part, func(r record) {
		g := groups[r.id]
		if g == nil {
			g = &group{}
			groups[r.id] = g
		}
		g.take(r)
	}); err != nil {
		return err
	}
	ids := make([]string, 0, len(groups))
	for id := range groups {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	if err := c.lookUpUnfinished(ctx, ids, groups); err != nil {
		return err
	}
	for _, id := range ids {
		if err := c.reportGroup(id, groups[id], each); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) take(r record) {
	switch {
	case r.effect && r.source == "":
		g.sourcelessEffects++
	case r.effect:
		if g.sources == nil {
			g.sources = map[string]int{}
		}
		g.sources[r.source]++
	default:
		i := slices.IndexFunc(g.sent, func(o identity) bool { return o.source == r.source })
		if i < 0 {
			g.sent = append(g.sent, identity{source: r.source, found: r.found, at: r.at, previous: semel.Key{Source: r.previousSource, ID: r.previousID}})
			return
		}
		o := &g.sent[i] // the identity was sent again: keep the first time and the last outcome
		if o.previous.ID == "" {
			o.previous = semel.Key{Source: r.previousSource, ID: r.previousID}
		}
		o.found = cmp.Or(r.found, o.found)
		if r.at != 0 && (o.at == 0 || r.at < o.at) {
			o.at = r.at
		}
	}
}

// lookUpUnfinished looks up the identities of messages that had not ended.
func (c *Comparison) lookUpUnfinished(ctx context.Context, ids []string, groups map[string]*group) error {
	var keys, formers []semel.Key
	var of []*identity
	for _, id := range ids {
		for i := range groups[id].sent {
			if o := &groups[id].sent[i]; o.found != Applied {
				keys, of = append(keys, semel.Key{Consumer: c.Consumer, Source: o.source, ID: id}), append(of, o)
				o.previous.Consumer = c.Consumer
				formers = append(formers, o.previous)
			}
		}
	}
	found, err := c.lookUp(ctx, keys, formers)
	for i := range found {
		of[i].found, of[i].readUnfinished = found[i], true
	}
	return err
}

func (c *Comparison) reportGroup(id string, g *group, each func(Finding) error) error {
	if len(g.sent) == 0 {
		c.counts.Others++
	}
	for _, o := range g.sent {
		c.counts.Sent++
		o.effects = g.sourcelessEffects + g.sources[o.source]
		kind := c.kind(o)
		if kind == "" {
			continue
		}
		f := Finding{Kind: kind, ID: id, Source: o.source, Effects: o.effects}
		if o.at != 0 {
			f.Sent = time.UnixMilli(o.at).UTC()
		}
		if err := each(f); err != nil {
			return err
		}
	}
	return nil
}

// kind returns and counts the finding for an identity. kind returns "" if there is no finding.
func (c *Comparison) kind(o identity) Kind {
	switch {
	case o.effects > 1:
		c.counts.Doubled++
		return Doubled
	case o.found != Applied && o.effects == 1:
		c.counts.Unmarked++
		return Unmarked
	case o.found == Applied && c.effects && o.effects == 0 && !o.readUnfinished:
		c.counts.WithoutEffect++
		return WithoutEffect
	case o.found == Applied:
		c.counts.Applied++
	case o.found == Waiting:
		c.counts.Waiting++
	case o.found == Aside:
		c.counts.Aside++
	case o.at != 0 && !c.Until.IsZero() && o.at > c.Until.UnixMilli():
		c.counts.Late++
	case o.at != 0 && o.at < c.Kept.UnixMilli() && !c.Kept.IsZero():
		c.counts.Unknown++
		return Unknown
	default:
		c.counts.Missing++
		return Missing
	}
	return ""
}

// errUnasked is the error if Comparison.Marker is nil.
var errUnasked = errors.New("reconcile: Comparison.Marker is not set")
