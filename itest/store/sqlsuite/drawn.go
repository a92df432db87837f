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

// place identifies a message by the number of its stream and its version.
type place struct{ stream, version int }

func (p place) String() string { return fmt.Sprintf("%c%d", 'a'+p.stream, p.version) }

// GoString returns a short text for the output of the library rapid.
func (p place) GoString() string { return p.String() }

// randomMessage is a message with a version. A message that another producer sent has the same content but another
// identity.
type randomMessage struct {
	place
	other bool
}

func (m randomMessage) String() string {
	if m.other {
		return m.place.String() + "'"
	}
	return m.place.String()
}

// GoString returns a short text for the output of the library rapid.
func (m randomMessage) GoString() string { return m.String() }

// call is one handler call for a version. Calls are counted from 1.
type call struct {
	place
	nth int
}

// GoString returns a short text for the output of the library rapid.
func (c call) GoString() string { return fmt.Sprintf("call %d of %v", c.nth, c.place) }

// randomCase is a random case: the messages of some streams, and faults.
type randomCase struct {
	lengths []int
	order   []randomMessage
	// Versions that arrive after all other versions are processed.
	late []place
	// failingCalls contains the handler calls that fail. discardingCalls contains the handler calls that discard
	// the message.
	failingCalls    []call
	discardingCalls []place
	// For each of the first runs, the number of handler calls after which the run is stopped.
	stops  []int
	config consumer.Config
	fetch  int
}

func draw(t *rapid.T) randomCase {
	d := randomCase{lengths: rapid.SliceOfN(rapid.IntRange(1, 6), 1, 3).Draw(t, "lengths")}
	var all []place
	for s, length := range d.lengths {
		for n := range length {
			all = append(all, place{s, n + 1})
			d.order = append(d.order, randomMessage{place: place{s, n + 1}})
		}
	}
	one := rapid.SampledFrom(all)
	for _, p := range rapid.SliceOfN(one, 0, 5).Draw(t, "twice") {
		d.order = append(d.order, randomMessage{place: p})
	}
	for _, p := range rapid.SliceOfN(one, 0, 2).Draw(t, "by another") {
		d.order = append(d.order, randomMessage{p, true})
	}
	d.order = rapid.Permutation(d.order).Draw(t, "order")
	d.late = rapid.SliceOfN(one, 0, 1).Draw(t, "late")
	d.failingCalls = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) call { return call{one.Draw(t, "of"), rapid.IntRange(1, 3).Draw(t, "nth")} }), 0, 5).Draw(t, "fails")
	d.discardingCalls = rapid.SliceOfN(one, 0, 2).Draw(t, "discards")
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
func (m randomMessage) message(stream string) *semel.Message {
	return &semel.Message{Headers: semel.Headers{{Name: "id", Value: []byte(m.String())}}, Body: fmt.Appendf(nil, `{"order":%q,"version":%d}`, stream, m.version)}
}

// expectedVersions returns the versions of a stream that must take effect: all versions before the first late version.
func (d *randomCase) expectedVersions(stream int, late []place) (all []int) {
	for n := 1; n <= d.lengths[stream] && !slices.Contains(late, place{stream, n}); n++ {
		if !slices.Contains(d.discardingCalls, place{stream, n}) {
			all = append(all, n)
		}
	}
	return all
}

// randomSource delivers in each run the messages that were not acked in earlier runs.
type randomSource struct {
	singleSource
	most int

	mutex   sync.Mutex
	all     []*semel.Message
	settled []bool
	next    int
}

func (s *randomSource) add(m *semel.Message) {
	s.all, s.settled = append(s.all, m), append(s.settled, false)
}

// restart returns the source for the next run.
func (s *randomSource) restart() *randomSource {
	left := &randomSource{most: s.most}
	for i, m := range s.all {
		if !s.settled[i] {
			left.add(m)
		}
	}
	return left
}

func (s *randomSource) Fetch(ctx context.Context, most source.Bound) (all []source.Delivery, err error) {
	for i := range min(most.Messages, s.most, len(s.all)-s.next) {
		all = append(all, source.Delivery{Message: s.all[s.next+i], Lane: onlyLane, Before: source.Unknown, Handle: s.next + i})
	}
	if s.next += len(all); len(all) == 0 {
		<-ctx.Done()
	}
	return all, nil
}

func (s *randomSource) Settle(_ context.Context, all []source.Settlement) ([]int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, one := range all {
		s.settled[one.Delivery.Handle.(int)] = true
	}
	return nil, nil
}

// caseRun is a random case with the store on which it runs.
type caseRun[Tx any] struct {
	Followed[Tx]
	randomCase
	name    string
	source  *randomSource
	intents *consumer.Intents[Tx]

	mutex  sync.Mutex
	calls  int // number of handler calls until this run is stopped
	cancel context.CancelFunc
	called map[place]int
}

// stream returns the name of a stream. No other test case with the same store uses the same name.
func (p *caseRun[Tx]) stream(n int) string { return fmt.Sprintf("%s-%c", p.name, 'a'+n) }

// handle writes an effect and an intent, and fails if the random case requires it.
func (p *caseRun[Tx]) handle(ctx context.Context, tx Tx, m *semel.Message) error {
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
	if slices.Contains(p.discardingCalls, at) {
		return semel.Discard("drawn")
	}
	if err := p.Append(ctx, tx, v.Order, v.Version); err != nil {
		return err
	}
	if slices.Contains(p.failingCalls, call{at, p.called[at]}) {
		return errors.New("drawn")
	}
	return nil
}
