package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/source"
)

// fetchMost and fetchBytes limit how much of a source is in memory.
const (
	fetchMost  = 1024
	fetchBytes = 8 << 20
)

// Read adds all messages of a bounded source to the comparison. Read finds identities and applies the filter
// like the consumer. If a message has no identity, Read calls the function each with the message and the reason.
func (c *Comparison) Read(ctx context.Context, src source.Source, config consumer.Config, each func(d *source.Delivery, why error) error) error {
	src.Lanes(ignoringObserver{})
	for {
		all, err := src.Fetch(ctx, source.Bound{Messages: fetchMost, Bytes: fetchBytes})
		if err != nil && !errors.Is(err, source.ErrEnd) {
			return err
		}
		if e := c.take(ctx, all, config, each); e != nil {
			return e
		}
		if err != nil {
			return nil
		}
		settled := make([]source.Settlement, len(all))
		for i := range all {
			settled[i] = source.Settlement{Delivery: &all[i], Kind: semel.Ack}
		}
		if _, err := src.Settle(ctx, settled); err != nil {
			return err
		}
	}
}

func (c *Comparison) take(ctx context.Context, all []source.Delivery, config consumer.Config, each func(d *source.Delivery, why error) error) error {
	var keys, formers []semel.Key
	var at []time.Time
	for i := range all {
		d := &all[i]
		d.Decode(nil)
		key, err := c.keyOf(d, config)
		switch {
		case !config.Takes(d.Message, d.Refused != ""):
			c.counts.Skipped++
		case err != nil:
			c.counts.Unusable++
			if err := each(d, err); err != nil {
				return err
			}
		default:
			keys, at = append(keys, key), append(at, sentAt(d.Message))
			formers = append(formers, c.previousOf(d.Message, config))
		}
	}
	return c.SentAs(ctx, keys, formers, at)
}

// previousOf returns the previous identity of a message, or the zero Key if the message has none.
func (c *Comparison) previousOf(m *semel.Message, config consumer.Config) semel.Key {
	if config.PreviousIdentity == nil {
		return semel.Key{}
	}
	source, id, err := config.PreviousIdentity.Identity.Identify(m)
	if err != nil {
		return semel.Key{}
	}
	return semel.Key{Consumer: c.Consumer, Source: source, ID: id}
}

func (c *Comparison) keyOf(d *source.Delivery, config consumer.Config) (semel.Key, error) {
	if d.Refused != "" {
		return semel.Key{}, errors.New(string(d.Refused) + ": " + d.Detail)
	}
	src, id, err := config.Identity.Identify(d.Message)
	return semel.Key{Consumer: c.Consumer, Source: src, ID: id}, err
}

// sentAt returns the time at which a message was sent: the producer's time or, if the message has none, the
// broker's time.
func sentAt(m *semel.Message) time.Time {
	if t := m.Time(); !t.IsZero() {
		return t
	}
	return m.Origin.Time()
}

// ignoringObserver is a LaneObserver that ignores all events.
type ignoringObserver struct{}

func (ignoringObserver) Given(source.Lane)                     {}
func (ignoringObserver) Revoking(context.Context, source.Lane) {}
func (ignoringObserver) Lost(source.Lane)                      {}

// SentBy adds sent messages to the comparison. SentBy calls the function read, which must call the function add with
// each sent identity. The times of sending are unknown. SentBy first writes the identities to files. Lookups start when
// read has returned, because read may hold the connection that a lookup needs.
func (c *Comparison) SentBy(ctx context.Context, read func(add func(id, source string) error) error) (err error) {
	all, err := newSpill()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, all.close()) }()
	if err := read(func(id, source string) error { return all.add(record{id: id, source: source}) }); err != nil {
		return err
	}
	for part := range parts {
		var keys []semel.Key
		if err := all.forEach(part, func(r record) { keys = append(keys, semel.Key{Consumer: c.Consumer, Source: r.source, ID: r.id}) }); err != nil {
			return err
		}
		for some := range slices.Chunk(keys, fetchMost) {
			if err := c.Sent(ctx, some, make([]time.Time, len(some))); err != nil {
				return err
			}
		}
	}
	return nil
}
