package sqlsuite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/source"
	"pgregory.net/rapid"
)

// place is a version of a stream.
type place struct{ stream, version int }

func (p place) String() string { return fmt.Sprintf("%c%d", 'a'+p.stream, p.version) }

// GoString returns a short text for rapid's output.
func (p place) GoString() string { return p.String() }

// drawnMessage is a message with a version. A message from another producer has another identity and the same content.
type drawnMessage struct {
	place
	other bool
}

func (m drawnMessage) String() string {
	if m.other {
		return m.place.String() + "'"
	}
	return m.place.String()
}

// GoString returns a short text for rapid's output.
func (m drawnMessage) GoString() string { return m.String() }

// call is a handler call for a version, counted from 1.
type call struct {
	place
	nth int
}

// GoString returns a short text for rapid's output.
func (c call) GoString() string { return fmt.Sprintf("call %d of %v", c.nth, c.place) }

// drawn is a drawn case: messages and faults of some streams.
type drawn struct {
	lengths []int
	order   []drawnMessage
	// late are versions that arrive when all others are processed.
	late []place
	// fails are handler calls that fail; discards are handler calls that discard the message.
	fails    []call
	discards []place
	// stops are the numbers of handler calls after which the first runs are stopped.
	stops  []int
	config consumer.Config
	fetch  int
}

func draw(t *rapid.T) drawn {
	d := drawn{lengths: rapid.SliceOfN(rapid.IntRange(1, 6), 1, 3).Draw(t, "lengths")}
	var all []place
	for s, length := range d.lengths {
		for n := range length {
			all = append(all, place{s, n + 1})
			d.order = append(d.order, drawnMessage{place: place{s, n + 1}})
		}
	}
	one := rapid.SampledFrom(all)
	for _, p := range rapid.SliceOfN(one, 0, 5).Draw(t, "twice") {
		d.order = append(d.order, drawnMessage{place: p})
	}
	for _, p := range rapid.SliceOfN(one, 0, 2).Draw(t, "by another") {
		d.order = append(d.order, drawnMessage{p, true})
	}
	d.order = rapid.Permutation(d.order).Draw(t, "order")
	d.late = rapid.SliceOfN(one, 0, 1).Draw(t, "late")
	d.fails = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) call { return call{one.Draw(t, "of"), rapid.IntRange(1, 3).Draw(t, "nth")} }), 0, 5).Draw(t, "fails")
	d.discards = rapid.SliceOfN(one, 0, 2).Draw(t, "discards")
	d.stops = rapid.SliceOfN(rapid.IntRange(1, 10), 0, 3).Draw(t, "stops")
	d.fetch = rapid.IntRange(1, 20).Draw(t, "fetch")
	d.config.Batch.MaxSize = rapid.IntRange(1, 20).Draw(t, "batch")
	d.config.Workers = rapid.IntRange(1, 3).Draw(t, "workers")
	d.config.Lanes = rapid.SampledFrom([]consumer.LaneMode{consumer.LanesPartition, consumer.LanesNone}).Draw(t, "lanes")
	d.config.MaxInMemoryWait = rapid.SampledFrom([]time.Duration{10 * time.Second, time.Millisecond}).Draw(t, "hold")
	gap := rapid.SampledFrom([]time.Duration{versions.DefaultGap, time.Second}).Draw(t, "gap")
	d.config.Version = &consumer.VersionPolicy{By: identity.Stream("body:/order").At("body:/version"), Gap: gap}
	return d
}

// message returns the message that the source delivers.
func (m drawnMessage) message(stream string) *semel.Message {
	return &semel.Message{Headers: semel.Headers{{Name: "id", Value: []byte(m.String())}}, Body: fmt.Appendf(nil, `{"order":%q,"version":%d}`, stream, m.version)}
}

// wants returns the versions of a stream that take effect, up to the first late one.
func (d *drawn) wants(stream int, late []place) (all []int) {
	for n := 1; n <= d.lengths[stream] && !slices.Contains(late, place{stream, n}); n++ {
		if !slices.Contains(d.discards, place{stream, n}) {
			all = append(all, n)
		}
	}
	return all
}

// drawnSource delivers to each run the messages that were not settled before.
type drawnSource struct {
	once
	most int

	mutex   sync.Mutex
	all     []*semel.Message
	settled []bool
	next    int
}

func (s *drawnSource) add(m *semel.Message) {
	s.all, s.settled = append(s.all, m), append(s.settled, false)
}

// again returns the source for the next run.
func (s *drawnSource) again() *drawnSource {
	left := &drawnSource{most: s.most}
	for i, m := range s.all {
		if !s.settled[i] {
			left.add(m)
		}
	}
	return left
}

func (s *drawnSource) Fetch(ctx context.Context, most source.Bound) (all []source.Delivery, err error) {
	for i := range min(most.Messages, s.most, len(s.all)-s.next) {
		all = append(all, source.Delivery{Message: s.all[s.next+i], Lane: onlyLane, Before: source.Unknown, Handle: s.next + i})
	}
	if s.next += len(all); len(all) == 0 {
		<-ctx.Done()
	}
	return all, nil
}

func (s *drawnSource) Settle(_ context.Context, all []source.Settlement) ([]int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, one := range all {
		s.settled[one.Delivery.Handle.(int)] = true
	}
	return nil, nil
}

// played is a drawn case with the store that it runs on.
type played[Tx any] struct {
	Followed[Tx]
	drawn
	name    string
	source  *drawnSource
	intents *consumer.Intents[Tx]

	mutex  sync.Mutex
	calls  int // left in this run, if it is to be stopped
	cancel context.CancelFunc
	called map[place]int
}

// stream returns a stream's name, which no other case of the store uses.
func (p *played[Tx]) stream(n int) string { return fmt.Sprintf("%s-%c", p.name, 'a'+n) }

// handle has an effect and writes an intent, and may fail after both.
func (p *played[Tx]) handle(ctx context.Context, tx Tx, m *semel.Message) error {
	v, err := semel.JSON[step](m)
	if err != nil {
		return err
	}
	at := place{int(v.Order[len(v.Order)-1] - 'a'), v.Version}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.calls--; p.calls == 0 {
		p.cancel()
	}
	p.called[at]++
	if err := p.intents.Write(ctx, tx, m, semel.Intent{To: p.name + "-mail", Purpose: "told"}); err != nil {
		return err
	}
	if slices.Contains(p.discards, at) {
		return semel.Discard("drawn")
	}
	if err := p.Append(ctx, tx, v.Order, v.Version); err != nil {
		return err
	}
	if slices.Contains(p.fails, call{at, p.called[at]}) {
		return errors.New("drawn")
	}
	return nil
}
