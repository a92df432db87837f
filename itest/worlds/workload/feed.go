// Package workload has sources and consumers for fault tests on PostgreSQL. The sources count acks, nacks and dead
// letters. The consumers use both drivers, and the consumers' handlers write into an effect log without a unique key.
package workload

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// The number of messages that are shuffled together.
const block = 64

// Feed delivers the messages 0, 1, 2, … to several sources until Enough returns true. Each source gets all
// messages, in an order of its own.
type Feed struct {
	// Enough is called before any source delivers a new message for the first time.
	Enough func() bool
	// Seed determines the order of deliveries.
	Seed uint64

	mu     sync.Mutex
	issued int // guarded by mu
	over   bool
}

// Issued returns the number of messages that were issued so far.
func (f *Feed) Issued() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.issued
}

// IDs returns the identities of the messages that were issued so far.
func (f *Feed) IDs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for n := range f.Issued() {
			if !yield(ID(n)) {
				return
			}
		}
	}
}

// nextBlock returns the end of the block that begins at the message with the number in the parameter from, or false if
// this block will never be delivered.
func (f *Feed) nextBlock(from int) (end int, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if from >= f.issued {
		f.over = f.over || f.Enough()
		if f.over {
			return 0, false
		}
		f.issued += block
	}
	return from + block, true
}

// ID returns the identity of message n.
func ID(n int) string { return fmt.Sprintf("m%d", n) }

// Message returns message n.
func Message(n int) *semel.Message {
	return &semel.Message{
		Headers: semel.Headers{{Name: "id", Value: []byte(ID(n))}},
		Body:    []byte(`{}`),
		Origin:  semel.Origin{Partition: -1, Offset: -1},
	}
}

// Source is one reader of a feed, and implements source.Source.
type Source struct {
	feed     *Feed
	random   *rand.Rand
	at       int
	pending  []int
	observer source.LaneObserver

	mu      sync.Mutex
	settled map[semel.SettleKind]int // guarded by mu
}

// Source returns a new reader. The number of the reader determines the order of its deliveries.
func (f *Feed) Source(number uint64) *Source {
	return &Source{feed: f, random: rand.New(rand.NewPCG(f.Seed, number)), settled: map[semel.SettleKind]int{}}
}

var lane = source.Lane{ID: "feed", Epoch: 1}

// Lanes implements source.Source.
func (s *Source) Lanes(o source.LaneObserver) { s.observer = o }

// Fetch implements source.Source.
func (s *Source) Fetch(_ context.Context, most source.Bound) ([]source.Delivery, error) {
	if s.at == 0 && s.pending == nil {
		s.observer.Given(lane)
	}
	var taken []source.Delivery
	for len(taken) < most.Messages {
		if len(s.pending) == 0 {
			end, ok := s.feed.nextBlock(s.at)
			if !ok {
				return taken, source.ErrEnd
			}
			s.shuffle(end)
		}
		n := s.pending[0]
		s.pending = s.pending[1:]
		taken = append(taken, source.Delivery{Message: Message(n), Lane: lane, Before: source.Unknown, Handle: n})
	}
	return taken, nil
}

func (s *Source) shuffle(end int) {
	for ; s.at < end; s.at++ {
		s.pending = append(s.pending, s.at)
	}
	s.random.Shuffle(len(s.pending), func(i, j int) { s.pending[i], s.pending[j] = s.pending[j], s.pending[i] })
}

// Settle implements source.Source.
func (s *Source) Settle(_ context.Context, settlements []source.Settlement) ([]int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range settlements {
		s.settled[settlements[i].Kind]++
	}
	return nil, nil
}

// Settled returns the number of deliveries that were acked, nacked or dead-lettered, as the parameter kind says.
func (s *Source) Settled(kind semel.SettleKind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.settled[kind]
}

// Info implements source.Source.
func (*Source) Info() source.Info { return source.Info{} }

// Flow implements source.Source.
func (s *Source) Flow(source.Lane, bool) {}

// Close implements source.Source.
func (s *Source) Close(context.Context) error { return nil }
