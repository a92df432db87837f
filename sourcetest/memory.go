package sourcetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// Memory is a broker with ordered lanes and its own source, all in memory, for tests and for benchmarks of consumers.
// Each Fetch makes one allocation, and Publish makes one allocation for 256 messages. Memory has all abilities of Can
// except Dated, because it stores no times.
type Memory struct {
	// mu guards all following fields except wake. A goroutine unlocks mu before it waits.
	mu       sync.Mutex
	lanes    []memoryLane
	observer source.LaneObserver
	epoch    uint64
	// turn is the lane from which the next Fetch takes messages first.
	turn int
	// unsettled is the number of messages that were published and not yet acked.
	unsettled            int
	given, ended, closed bool
	dead                 []*semel.Message

	// wake contains one token if a waiting Fetch should check again whether there are messages.
	wake chan struct{}
}

// memoryLane is a queue of blocks, which are groups of messages. The blocks before next have been delivered; each block
// stays in the queue until all its messages are acked or dead-lettered.
type memoryLane struct {
	id     source.Lane
	blocks []*block
	// The next message to deliver is in blocks[next].slots[at].
	next, at int
	back     []*slot
	paused   bool
}

type block struct {
	lane    *memoryLane
	slots   []slot
	settled int
}

const blockSize = 256

// slot is an element of the broker's memory with one message. The Handle of a delivery is a pointer to its slot.
type slot struct {
	message *semel.Message
	block   *block
	times   int
	due     time.Time
	state   slotState
}

type slotState uint8

const (
	ready slotState = iota
	delivered
	back
	settled
)

var (
	_ source.Source = (*Memory)(nil)
	_ Broker        = (*Memory)(nil)

	_ DeadLetterBroker = (*Memory)(nil)
)

// NewMemory returns an empty broker whose lanes are named "0", "1" and so on.
func NewMemory(lanes int) *Memory {
	m := &Memory{lanes: make([]memoryLane, lanes), wake: make(chan struct{}, 1), epoch: 1}
	for i := range m.lanes {
		m.lanes[i].id = source.Lane{ID: strconv.Itoa(i), Epoch: 1}
	}
	return m
}

// Publish appends a message to a lane. The broker stores the pointer v and makes no copy of the message.
func (m *Memory) Publish(lane int, v *semel.Message) error {
	m.mu.Lock()
	l := &m.lanes[lane]
	if n := len(l.blocks); n == 0 || len(l.blocks[n-1].slots) == blockSize {
		l.blocks = append(l.blocks, &block{lane: l, slots: make([]slot, 0, blockSize)})
	}
	b := l.blocks[len(l.blocks)-1]
	b.slots = append(b.slots, slot{message: v, block: b})
	m.unsettled++
	m.mu.Unlock()
	m.rouse()
	return nil
}

// End declares that no more messages will be published: once every message is acked or dead-lettered, Fetch returns
// source.ErrEnd.
func (m *Memory) End() error {
	m.mu.Lock()
	m.ended = true
	m.mu.Unlock()
	m.rouse()
	return nil
}

// Open begins a new epoch and returns m itself as the source. In the new epoch the source delivers every
// message again that was not acked.
func (m *Memory) Open() (source.Source, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.epoch++
	m.given, m.closed = false, false
	for i := range m.lanes {
		m.lanes[i].rewind(m.epoch)
	}
	return m, nil
}

func (l *memoryLane) rewind(epoch uint64) {
	l.id.Epoch = epoch
	l.next, l.at, l.back, l.paused = 0, 0, nil, false
	for _, b := range l.blocks {
		for i := range b.slots {
			if s := &b.slots[i]; s.state != settled {
				s.state = ready
			}
		}
	}
}

func (m *Memory) rouse() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// Lanes sets the observer. The first Fetch assigns all lanes and notifies the observer.
func (m *Memory) Lanes(o source.LaneObserver) { m.observer = o }

// Fetch implements source.Source. Fetch takes messages from the lanes in turn. In each lane, Fetch first takes messages
// that were nacked and whose delay has passed. After Close, the error of Fetch wraps semel.ErrClosed.
func (m *Memory) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if ctx.Err() != nil {
		return nil, nil
	}
	m.giveLanes()
	for {
		out, due, err := m.take(most)
		if len(out) > 0 || err != nil {
			return out, err
		}
		if !m.wait(ctx, due) {
			return nil, nil
		}
	}
}

// Info implements source.Source.
func (m *Memory) Info() source.Info {
	return source.Info{Idle: m.idle, DeadLetters: func(string) error { return nil }}
}

func (m *Memory) idle(context.Context) (bool, []semel.Unfinished, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.lanes {
		for _, b := range m.lanes[i].blocks {
			for j := range b.slots {
				if state := b.slots[j].state; state == ready || state == back {
					return false, nil, nil
				}
			}
		}
	}
	return true, nil, nil
}

func (m *Memory) giveLanes() {
	m.mu.Lock()
	give := m.observer != nil && !m.given && !m.closed
	m.given = true
	m.mu.Unlock()
	for i := range m.lanes {
		if give {
			m.observer.Given(m.lanes[i].id)
		}
	}
}

// wait blocks until Fetch should check again whether there are messages. If ctx ends first, wait returns false. The
// parameter due, if it is not zero, is the time at which a nacked message can be delivered again.
func (m *Memory) wait(ctx context.Context, due time.Time) bool {
	var at <-chan time.Time
	if !due.IsZero() {
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		at = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-m.wake:
	case <-at:
	}
	return true
}

// take returns the available deliveries. If no delivery is available, take returns the time at which the next nacked
// message can be delivered again.
func (m *Memory) take(most source.Bound) ([]source.Delivery, time.Time, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return nil, time.Time{}, fmt.Errorf("sourcetest: %w", semel.ErrClosed)
	case m.ended && m.unsettled == 0:
		return nil, time.Time{}, source.ErrEnd
	}
	t := taking{most: most}
	for range m.lanes {
		l := &m.lanes[m.turn]
		m.turn = (m.turn + 1) % len(m.lanes)
		if !l.paused {
			l.take(&t)
		}
	}
	return t.out, t.due, nil
}

// taking is the state of a running Fetch.
type taking struct {
	most  source.Bound
	bytes int64
	out   []source.Delivery
	due   time.Time
}

// fits reports whether the batch has room for another message. The first message of a batch always fits.
func (t *taking) fits(m *semel.Message) bool {
	if len(t.out) == 0 {
		return true
	}
	return len(t.out) < t.most.Messages && t.bytes+int64(len(m.Body)) <= t.most.Bytes
}

func (t *taking) add(s *slot, lane source.Lane) {
	if t.out == nil {
		t.out = make([]source.Delivery, 0, min(max(1, t.most.Messages), 1024))
	}
	t.bytes += int64(len(s.message.Body))
	t.out = append(t.out, source.Delivery{Message: s.message, Lane: lane, Before: s.times, Handle: s})
	s.times++
	s.state = delivered
}

func (l *memoryLane) take(t *taking) {
	l.takeBack(t)
	for l.next < len(l.blocks) {
		b := l.blocks[l.next]
		if l.at == len(b.slots) {
			if len(b.slots) < blockSize {
				return
			}
			l.next, l.at = l.next+1, 0
			continue
		}
		s := &b.slots[l.at]
		if s.state == ready {
			if !t.fits(s.message) {
				return
			}
			t.add(s, l.id)
		}
		l.at++
	}
}

func (l *memoryLane) takeBack(t *taking) {
	if len(l.back) == 0 {
		return
	}
	now := time.Now()
	l.back = slices.DeleteFunc(l.back, func(s *slot) bool {
		switch {
		case s.state != back:
			return true
		case s.due.After(now):
			if t.due.IsZero() || s.due.Before(t.due) {
				t.due = s.due
			}
			return false
		case !t.fits(s.message):
			return false
		}
		t.add(s, l.id)
		return true
	})
}

// Settle implements source.Source. Settle never fails. For a delivery of an earlier epoch, Settle stores a dead letter,
// and ignores an ack or nack.
func (m *Memory) Settle(_ context.Context, all []source.Settlement) ([]int, error) {
	m.mu.Lock()
	for i := range all {
		if all[i].Kind == semel.DeadLetter {
			m.dead = append(m.dead, all[i].Delivery.Message)
		} else if all[i].Delivery.Lane.Epoch == m.epoch {
			m.settle(&all[i])
		}
	}
	m.mu.Unlock()
	m.rouse()
	return nil, nil
}

// Dead returns the dead letters so far, in the order in which they were added.
func (m *Memory) Dead() ([]*semel.Message, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.dead), nil
}

func (m *Memory) settle(v *source.Settlement) {
	s, ok := v.Delivery.Handle.(*slot)
	if !ok || s.state == settled {
		return
	}
	l := s.block.lane
	if v.Kind == semel.Nack {
		if s.state == delivered {
			s.state, s.due = back, time.Now().Add(v.After)
			l.back = append(l.back, s)
		}
		return
	}
	s.state = settled
	s.message = nil
	s.block.settled++
	m.unsettled--
	for l.next > 0 && l.blocks[0].settled == blockSize {
		l.blocks = l.blocks[1:]
		l.next--
	}
}

// Flow pauses a lane if the parameter on is false, and resumes the lane if on is true.
func (m *Memory) Flow(which source.Lane, on bool) {
	m.mu.Lock()
	for i := range m.lanes {
		if m.lanes[i].id == which {
			m.lanes[i].paused = !on
		}
	}
	m.mu.Unlock()
	m.rouse()
}

// Close ends a waiting Fetch and makes later calls of Fetch fail. After the next Open, the messages that were
// not acked are delivered again.
func (m *Memory) Close(context.Context) error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.rouse()
	return nil
}
