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

// Outcome is the outcome of an identity according to the store.
type Outcome uint8

// The outcomes.
const (
	// None: there is no marker.
	None Outcome = iota
	// Applied: its effect is committed.
	Applied
	// Waiting: it was received and is unfinished.
	Waiting
	// Aside: it is parked, discarded or dead-lettered.
	Aside
)

// OutcomeOf returns the outcome of a marker.
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

// Kind names a finding.
type Kind string

// The findings.
const (
	// Missing: it was sent and has no marker.
	Missing Kind = "missing"
	// Doubled: its effect exists more than once.
	Doubled Kind = "doubled"
	// WithoutEffect: it is marked as applied, and its effect does not exist.
	WithoutEffect Kind = "without effect"
	// Unmarked: its effect exists, and it is not marked as applied.
	Unmarked Kind = "unmarked"
	// Unknown: its marker may have been removed, or it has no identity.
	Unknown Kind = "unknown"
)

// Finding is an identity whose marker, effect and message do not agree.
type Finding struct {
	Kind    Kind      `json:"what"`
	ID      string    `json:"id"`
	Source  string    `json:"source"`
	Sent    time.Time `json:"sent,omitzero"`
	Effects int       `json:"effects"`
}

// Counts count identities, each once, however often it was sent. Unusable counts messages without an
// identity.
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
	// Skipped counts messages that the consumer does not take.
	Skipped int64 `json:"skipped"`
	// Others counts ids that have effects and were not sent.
	Others int64 `json:"others"`
}

// Found returns the number of findings.
func (c Counts) Found() int64 {
	return c.Missing + c.Doubled + c.WithoutEffect + c.Unmarked + c.Unknown + c.Unusable
}

// Comparison compares the messages passed to Sent with the effects passed to Effect. Close removes its
// files.
type Comparison struct {
	// Marker looks up an identity.
	Marker func(ctx context.Context, key semel.Key) (admin.StoredMarker, bool, error)
	// Consumer is the consumer whose identities are compared.
	Consumer string
	// Until is the time until which a sent message must have a marker; zero: all must.
	Until time.Time
	// Kept is the time since which markers are kept; zero: all are.
	Kept time.Time
	// Progress, if not nil, is called with the numbers of messages and effects read, and with the part
	// that is compared, from 0 to 1.
	Progress func(read, effects int64, compared float64)

	counts  Counts
	spill   *spill
	effects bool
	read    [2]int64 // messages, effects
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

// Sent adds identities that were sent; at is zero if the time is unknown. Sent looks them up, several
// at once.
func (c *Comparison) Sent(ctx context.Context, keys []semel.Key, at []time.Time) error {
	return c.SentAs(ctx, keys, nil, at)
}

// SentAs is Sent for identities with previous identities. A message that is marked under either
// identity is not missing. Formers may be nil; a previous identity without an id is none.
func (c *Comparison) SentAs(ctx context.Context, keys, formers []semel.Key, at []time.Time) error {
	found, err := c.lookUp(ctx, keys, formers)
	if err != nil {
		return err
	}
	for i, k := range keys {
		r := record{id: k.ID, source: k.Source, found: found[i]}
		if formers != nil && found[i] != Applied { // it is looked up again
			r.formerID, r.formerSource = formers[i].ID, formers[i].Source
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

// WithEffects announces that Effect is called from now on with all effects of the messages passed to
// Sent before.
func (c *Comparison) WithEffects() { c.effects = true }

// Effect adds one effect of an id; source is "" if unknown.
func (c *Comparison) Effect(id, source string) error {
	if c.read[1]++; c.read[1]%1024 == 0 {
		c.report(0)
	}
	return c.add(record{effect: true, id: id, source: source})
}

// Close removes the files of the comparison.
func (c *Comparison) Close() error {
	if c.spill == nil {
		return nil
	}
	return c.spill.close()
}

// Compare calls each for every finding. The findings of an id come together; otherwise the order is
// undefined.
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

// identity is an identity that was sent.
type identity struct {
	source  string
	found   Outcome
	at      int64
	effects int
	// later: it was unfinished when it was read, so the effects may be older than its marker.
	later bool
	// former is its previous identity; zero if unknown.
	former semel.Key
}

// group holds the messages and effects of one id.
type group struct {
	sent []identity
	// effects are the effects with an unknown source.
	effects int
	sources map[string]int
}

func (c *Comparison) compare(ctx context.Context, part int, each func(Finding) error) error {
	groups := map[string]*group{}
	if err := c.spill.each(part, func(r record) {
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
	if err := c.again(ctx, ids, groups); err != nil {
		return err
	}
	for _, id := range ids {
		if err := c.judge(id, groups[id], each); err != nil {
			return err
		}
	}
	return nil
}

func (g *group) take(r record) {
	switch {
	case r.effect && r.source == "":
		g.effects++
	case r.effect:
		if g.sources == nil {
			g.sources = map[string]int{}
		}
		g.sources[r.source]++
	default:
		i := slices.IndexFunc(g.sent, func(o identity) bool { return o.source == r.source })
		if i < 0 {
			g.sent = append(g.sent, identity{source: r.source, found: r.found, at: r.at, former: semel.Key{Source: r.formerSource, ID: r.formerID}})
			return
		}
		o := &g.sent[i] // sent again: the first time and the last outcome count
		if o.former.ID == "" {
			o.former = semel.Key{Source: r.formerSource, ID: r.formerID}
		}
		o.found = cmp.Or(r.found, o.found)
		if r.at != 0 && (o.at == 0 || r.at < o.at) {
			o.at = r.at
		}
	}
}

// again looks up identities once more that were unfinished.
func (c *Comparison) again(ctx context.Context, ids []string, groups map[string]*group) error {
	var keys, formers []semel.Key
	var of []*identity
	for _, id := range ids {
		for i := range groups[id].sent {
			if o := &groups[id].sent[i]; o.found != Applied {
				keys, of = append(keys, semel.Key{Consumer: c.Consumer, Source: o.source, ID: id}), append(of, o)
				o.former.Consumer = c.Consumer
				formers = append(formers, o.former)
			}
		}
	}
	found, err := c.lookUp(ctx, keys, formers)
	for i := range found {
		of[i].found, of[i].later = found[i], true
	}
	return err
}

func (c *Comparison) judge(id string, g *group, each func(Finding) error) error {
	if len(g.sent) == 0 {
		c.counts.Others++
	}
	for _, o := range g.sent {
		c.counts.Sent++
		o.effects = g.effects + g.sources[o.source]
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

// kind returns the finding for an identity and counts it; "" if there is none.
func (c *Comparison) kind(o identity) Kind {
	switch {
	case o.effects > 1:
		c.counts.Doubled++
		return Doubled
	case o.found != Applied && o.effects == 1:
		c.counts.Unmarked++
		return Unmarked
	case o.found == Applied && c.effects && o.effects == 0 && !o.later:
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

// errUnasked: Marker is not set.
var errUnasked = errors.New("reconcile: Comparison.Marker is not set")
