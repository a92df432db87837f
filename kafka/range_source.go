package kafka

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// rangeSource reads each lane of a range to the lane's end in the range.
type rangeSource struct {
	of       *Range
	client   *kgo.Client
	decoder  *message.Decoder
	observer source.LaneObserver
	// The field begun is true after reading has begun. lastCheck is the time of the last check of the topics.
	// Only the goroutine that calls Fetch uses these fields.
	begun     bool
	lastCheck time.Time

	mutex   sync.Mutex // guards the fields below and the fields of the lanes
	lanes   map[topicPartition]*rangeLane
	order   []*rangeLane
	waiting []*record // polled and not delivered yet
	nacked  []*record // nacked records; each waits for the time of its next delivery
	open    int       // number of delivered records that are not acked or nacked
	wake    chan struct{}
	closed  bool
}

// rangeLane is a partition of the range, with its end offset.
type rangeLane struct {
	lane   lane
	end    int64
	next   int64 // offset of the next record to poll
	paused bool
}

var _ source.Source = (*rangeSource)(nil)

// Source returns a source that reads the given lanes, as returned by the method Lanes, from their current positions.
// The deliveries have the same format and lanes as the deliveries of the group's source. Nacked messages are kept in
// memory.
func (r *Range) Source(lanes []admin.ReplayLane) (source.Source, error) {
	s := &rangeSource{of: r, decoder: r.config.decoder(), lanes: map[topicPartition]*rangeLane{}, wake: make(chan struct{}, 1)}
	begin := map[string]map[int32]kgo.Offset{}
	for _, l := range lanes {
		p, err := laneNamed(l.Lane)
		if err != nil {
			return nil, err
		}
		own := &rangeLane{lane: lane{topicPartition: p, id: source.Lane{ID: l.Lane, Epoch: 1}}, end: l.To, next: max(l.From, l.After+1)}
		if _, err := hex.Decode(own.lane.topicID[:], []byte(l.Is)); err != nil || len(l.Is) != 2*len(own.lane.topicID) {
			return nil, fmt.Errorf("kafka: partition %s: %q is not the id of a topic", l.Lane, l.Is)
		}
		s.lanes[p], s.order = own, append(s.order, own)
		if own.next >= own.end {
			continue
		}
		if begin[p.topic] == nil {
			begin[p.topic] = map[int32]kgo.Offset{}
		}
		begin[p.topic][p.partition] = kgo.NewOffset().At(own.next)
	}
	var err error
	s.client, err = r.brokers.reader(begin, kgo.ConsumeResetOffset(kgo.NoResetOffset()), kgo.FetchMaxBytes(mostOfBroker), kgo.FetchMaxPartitionBytes(mostOfPartition))
	if err != nil {
		return nil, err
	}
	return s, nil
}

func laneNamed(lane string) (topicPartition, error) {
	i := strings.LastIndexByte(lane, '/')
	n, err := strconv.ParseInt(lane[i+1:], 10, 32)
	if i < 1 || err != nil {
		return topicPartition{}, fmt.Errorf("kafka: %q is not a partition; write it as orders/0", lane)
	}
	return topicPartition{lane[:i], int32(n)}, nil
}

// Lanes implements source.Source.
func (s *rangeSource) Lanes(o source.LaneObserver) { s.observer = o }

// Info implements source.Source.
func (s *rangeSource) Info() source.Info { return source.Info{Bounded: true, AtEnd: s.atEnd} }

// atEnd implements source.Info.AtEnd.
func (s *rangeSource) atEnd() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return !slices.ContainsFunc(s.order, func(l *rangeLane) bool { return l.next < l.end && !l.paused }) && len(s.nacked) == 0 &&
		!slices.ContainsFunc(s.waiting, func(r *record) bool { return !s.lanes[r.lane.topicPartition].paused })
}

// Fetch implements source.Source. Fetch returns source.ErrEnd after all records are delivered and acked.
func (s *rangeSource) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	s.assign()
	for ctx.Err() == nil {
		found, due, over, closed := s.take(most)
		switch {
		case closed:
			return nil, fmt.Errorf("kafka: the range is closed: %w", semel.ErrClosed)
		case len(found) > 0:
			return deliveriesOf(found, s.decoder), nil
		case over:
			if err := s.checkUnchanged(ctx); err != nil {
				return nil, err
			}
			return nil, source.ErrEnd
		}
		if err := s.poll(ctx, most, due); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// assign notifies the observer of all lanes in the first call.
func (s *rangeSource) assign() {
	if s.begun {
		return
	}
	s.begun = true
	for _, l := range s.order {
		if s.observer != nil {
			s.observer.Given(l.lane.id)
		}
	}
}

// take returns deliverable records. The result due is the time at which the next nacked record must be delivered again.
// The result over is true if all records are read and acked.
func (s *rangeSource) take(most source.Bound) (found []*record, due time.Time, over, closed bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var bytes int64
	now := time.Now()
	choose := func(from []*record, ready func(*record) bool) []*record {
		return slices.DeleteFunc(from, func(r *record) bool {
			full := len(found) > 0 && (len(found) >= most.Messages || bytes+r.size > most.Bytes)
			if full || s.lanes[r.lane.topicPartition].paused || !ready(r) {
				return false
			}
			found, bytes = append(found, r), bytes+r.size
			return true
		})
	}
	slices.SortStableFunc(s.nacked, func(a, b *record) int { return a.deliveryTime.Compare(b.deliveryTime) })
	s.nacked = choose(s.nacked, func(r *record) bool { return !r.deliveryTime.After(now) })
	s.waiting = choose(s.waiting, func(*record) bool { return true })
	s.open += len(found)
	if len(s.nacked) > 0 {
		due = s.nacked[0].deliveryTime
	}
	over = s.open == 0 && len(s.nacked) == 0 && len(s.waiting) == 0 && !slices.ContainsFunc(s.order, func(l *rangeLane) bool { return l.next < l.end })
	return found, due, over, s.closed
}

// poll polls the brokers until records arrive, a nacked record is due, or a call of Settle ends the poll.
func (s *rangeSource) poll(ctx context.Context, most source.Bound, due time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !due.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, due)
		defer stop()
	}
	if !s.hasRecords() {
		select {
		case <-ctx.Done():
		case <-s.wake:
		}
		return nil
	}
	short, stop := context.WithTimeout(ctx, fetchWait) // ends soon, so that the next iteration notices a call of Settle
	defer stop()
	fetches := s.client.PollRecords(short, most.Messages)
	if fetches.NumRecords() == 0 && time.Since(s.lastCheck) > askAgain {
		s.lastCheck = time.Now()
		if err := s.checkUnchanged(ctx); err != nil {
			return err
		}
	}
	return s.accept(fetches)
}

// askAgain is the interval at which the topics are checked while no records arrive. A topic that was deleted and
// created again has no records at the expected offsets.
const askAgain = 2 * time.Second

// hasRecords reports whether a lane has records to poll.
func (s *rangeSource) hasRecords() bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.ContainsFunc(s.order, func(l *rangeLane) bool { return l.next < l.end && !l.paused })
}

// accept stores polled records, up to the ends of the lanes.
func (s *rangeSource) accept(fetches kgo.Fetches) error {
	var errs error
	fetches.EachError(func(topic string, partition int32, err error) {
		switch {
		case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		case errors.Is(err, kerr.OffsetOutOfRange), errors.Is(err, kerr.UnknownTopicID), errors.Is(err, kerr.UnknownTopicOrPartition):
			errs = errors.Join(errs, fmt.Errorf("partition %s/%d: %w: %w", topic, partition, ErrRange, err))
		default:
			errs = errors.Join(errs, explain(err, topic, ""))
		}
	})
	s.mutex.Lock()
	defer s.mutex.Unlock()
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		l := s.lanes[topicPartition{p.Topic, p.Partition}]
		if l == nil {
			return
		}
		for _, raw := range p.Records {
			if raw.Offset < l.next || raw.Offset >= l.end {
				l.next = max(l.next, min(raw.Offset, l.end))
				continue
			}
			l.next = raw.Offset + 1
			if !raw.Attrs.IsControl() {
				s.waiting = append(s.waiting, &record{lane: &l.lane, raw: raw, size: int64(len(raw.Key)+len(raw.Value)) + 1})
			}
		}
		if l.next >= l.end {
			s.client.PauseFetchPartitions(map[string][]int32{p.Topic: {p.Partition}})
		}
	})
	return errs
}

// checkUnchanged returns an error if a topic was deleted and created again since the first Fetch.
func (s *rangeSource) checkUnchanged(ctx context.Context) error {
	was := map[string][16]byte{}
	for _, l := range s.order {
		was[l.lane.topic] = l.lane.topicID
	}
	if _, err := s.of.listLogs(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	for topic, id := range was {
		if s.of.topics.id(topic) != id {
			return fmt.Errorf("topic %s was deleted and created again while it was read: %w", topic, ErrRange)
		}
	}
	return nil
}

// Settle implements source.Source, without support for dead letters.
func (s *rangeSource) Settle(_ context.Context, all []source.Settlement) (left []int, err error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for i := range all {
		r, own := all[i].Delivery.Handle.(*record)
		switch {
		case !own || r.raw == nil:
		case all[i].Kind == semel.DeadLetter:
			left = append(left, i)
		case all[i].Kind == semel.Nack:
			r.deliveryTime = time.Now().Add(all[i].After)
			s.nacked, s.open = append(s.nacked, r), s.open-1
		default:
			r.raw = nil
			s.open--
		}
	}
	s.wakeUp()
	if left != nil {
		err = fmt.Errorf("kafka: a range has no dead letters; park the message instead: %w", semel.ErrUnsupported)
	}
	return left, err
}

// Flow implements source.Source.
func (s *rangeSource) Flow(which source.Lane, on bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for p, l := range s.lanes {
		if l.lane.id != which {
			continue
		}
		l.paused = !on
		partition := map[string][]int32{p.topic: {p.partition}}
		if on && l.next < l.end {
			s.client.ResumeFetchPartitions(partition)
		} else {
			s.client.PauseFetchPartitions(partition)
		}
	}
	s.wakeUp()
}

// wakeUp makes Fetch search deliverable records again. wakeUp never blocks.
func (s *rangeSource) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Close implements source.Source.
func (s *rangeSource) Close(context.Context) error {
	s.mutex.Lock()
	s.closed = true
	s.mutex.Unlock()
	s.client.Close()
	return nil
}
