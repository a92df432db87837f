package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
)

// settleTimeout is how long a call of the source's Settle may take.
const settleTimeout = 30 * time.Second

// settler acks or nacks messages at the source. One call of the source's Settle contains all messages that are in the
// queue. The queue is limited, because the number of messages that are not acked is limited.
type settler struct {
	source source.Source
	config *Config
	// results returns the stored results of duplicates.
	results func(context.Context, []resultOf) ([][]byte, error)
	// emit sends the intents of duplicates again.
	emit func(context.Context, []resultOf) error
	wake chan struct{}

	mutex sync.Mutex
	queue []*machine.Settle // guarded by mutex
}

func newSettler(src source.Source, c *Config, results func(context.Context, []resultOf) ([][]byte, error)) *settler {
	return &settler{source: src, config: c, results: results, wake: make(chan struct{}, 1)}
}

func (s *settler) add(a *machine.Settle) {
	s.mutex.Lock()
	s.queue = append(s.queue, a)
	s.mutex.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *settler) take() []*machine.Settle {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	q := s.queue
	s.queue = nil
	return q
}

func (s *settler) work(base context.Context, events chan<- machine.Event) {
	for {
		select {
		case <-s.wake:
		case <-base.Done():
			return
		}
		s.answer(base, s.take(), events)
	}
}

var errSettleGoexit = errors.New("the source's Settle, or OnDuplicate, ended its goroutine (runtime.Goexit)")

// answer acks or nacks the messages of a queue and sends the results. If the source calls runtime.Goexit, no message
// counts as acked.
func (s *settler) answer(base context.Context, queue []*machine.Settle, events chan<- machine.Event) {
	var all []machine.Event
	returned := false
	defer func() {
		if !returned {
			all = answers(queue, allIndexes(countSettlements(queue)), errSettleGoexit)
		}
		for _, e := range all {
			select {
			case events <- e:
			case <-base.Done():
				return
			}
		}
	}()
	all = s.settle(base, queue)
	returned = true
}

// countSettlements returns the number of deliveries in a queue that must be acked, nacked or dead-lettered.
func countSettlements(queue []*machine.Settle) (n int) {
	for _, q := range queue {
		n += len(q.Items)
	}
	return n
}

func (s *settler) settle(base context.Context, queue []*machine.Settle) []machine.Event {
	if countSettlements(queue) == 0 {
		return nil
	}
	telling, cancel := context.WithTimeout(base, settleTimeout)
	defer cancel()
	held, why := s.hold(telling, queue)
	now := s.collectSettlements(queue, held)
	left, err := s.send(base, now.settlements)
	return answers(queue, now.waitingIndexes(left, held), cmp.Or(err, why))
}

// send calls the source's Settle and returns the indexes of the settlements (acks, nacks or dead letters) that the
// source did not accept.
func (s *settler) send(base context.Context, all []source.Settlement) (left []int, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	s.config.At(faults.BeforeSettle, len(all))
	ctx, cancel := context.WithTimeout(base, settleTimeout)
	defer cancel()
	err = s.config.Source("Settle", func() (err error) {
		left, err = s.source.Settle(ctx, all)
		return err
	})
	s.config.At(faults.AfterSettle, len(all)-len(left))
	if err != nil && len(left) == 0 {
		left = allIndexes(len(all))
	}
	return left, err
}

func allIndexes(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// answers returns an event for each Settle of the queue. The slice left contains the indexes, in the queue, of the
// messages that the source did not accept, in ascending order without repetitions. Each event contains those of these
// indexes that belong to its Settle.
func answers(queue []*machine.Settle, left []int, err error) []machine.Event {
	var events []machine.Event
	first := 0
	for _, q := range queue {
		e := machine.Settled{Settle: q, Err: err}
		for len(left) > 0 && left[0] < first+len(q.Items) {
			e.Left = append(e.Left, left[0]-first)
			left = left[1:]
		}
		first += len(q.Items)
		events = append(events, e)
	}
	return events
}
