package kafka

import (
	"context"
	"encoding/base64"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/semel-go/semel/kafka/internal/message"
	"github.com/semel-go/semel/source"
)

// deliveries delivers the records of lanes to the consumer, and handles acks, nacks and dead letters.
type deliveries struct {
	budget *hook.Budget
	lanes  *lanes
	intake *intake

	// mu guards the fields below. A goroutine that holds mu may lock lanes.mu.
	mu   sync.Mutex
	turn int // index of the lane that delivers next
	// The field full is true if the source must not deliver further records before a delivery is acked, nacked or
	// dead-lettered.
	full bool
}

// tooMuchHidden reports whether the source must deliver no further records for now, because the source itself needs too
// much memory. If a record is too large, the consumer counts only the first part of the record in its budget, but the
// source keeps the whole record for a dead letter. The caller holds lanes.mu.
func (d *deliveries) tooMuchHidden(all []*lane) bool {
	var hidden int64
	for _, l := range all {
		hidden += l.hiddenBytes
	}
	return hidden >= d.budget.Most() && hidden > 0
}

// fetchResult is the result of a search for records to deliver: the records or, if there are none, the time of the next
// search.
type fetchResult struct {
	records []*record
	bytes   int64
	due     time.Time
	// skipPoll is true if the source must not poll.
	skipPoll bool
	err      error
}

// mostBack is the number of nacked deliveries above which the source stops polling.
const mostBack = 10_000

// take returns deliverable records. Lanes take turns. In a lane, nacked records whose delay has passed come
// first.
func (d *deliveries) take(most source.Bound) (f fetchResult) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lanes.withAll(func(all []*lane) {
		now := time.Now()
		if d.full = d.tooMuchHidden(all); !d.full {
			for range all {
				d.turn = (d.turn + 1) % len(all)
				all[d.turn].take(&f, most, now)
			}
		}
		d.intake.resumeInBudget(all, len(f.records) == 0)
		back := 0
		for _, l := range all {
			back += len(l.nacked)
		}
		f.skipPoll = d.full || back >= mostBack
	})
	return f
}

func (l *lane) take(f *fetchResult, most source.Bound, now time.Time) {
	if !l.isBlocked() {
		l.takeBack(f, most, now)
		l.takeReady(f, most, now)
	}
}

// add adds a record if the result stays within the limit, and reports whether the record was added. The first record
// always fits.
func (f *fetchResult) add(r *record, most source.Bound, now time.Time) bool {
	if len(f.records) > 0 && (len(f.records) >= most.Messages || f.bytes+r.size > most.Bytes) {
		return false
	}
	f.bytes += r.size
	f.records = append(f.records, r)
	r.state, r.deliveryTime = delivered, now
	r.lane.unsettled++
	r.lane.hiddenBytes += r.hiddenSize
	r.lane.delivered = max(r.lane.delivered, r.after.offset)
	return true
}

func (l *lane) takeBack(f *fetchResult, most source.Bound, now time.Time) {
	kept := l.nacked[:0]
	for _, r := range l.nacked {
		switch {
		case r.state != handedBack:
		case r.deliveryTime.After(now):
			if f.due.IsZero() || r.deliveryTime.Before(f.due) {
				f.due = r.deliveryTime
			}
			kept = append(kept, r)
		case !f.add(r, most, now):
			kept = append(kept, r)
		}
	}
	clear(l.nacked[len(kept):])
	l.nacked = kept
}

func (l *lane) takeReady(f *fetchResult, most source.Bound, now time.Time) {
	n := 0
	for n < len(l.ready) && f.add(l.ready[n], most, now) {
		l.ready[n] = nil
		n++
	}
	l.ready = l.ready[n:]
}

// Settle implements source.Source. Acks of a lane move the group's offset up to the first record that is not acked; one
// request commits all lanes. An ack is accepted now and committed later if an earlier record is not acked yet, or if
// the ack comes within Config.CommitInterval after the last request. Settle returns the acks that the group did not
// accept, and the dead letters that could not be written.
func (s *Source) Settle(ctx context.Context, all []source.Settlement) ([]int, error) {
	sum := s.deliveries.settle(all)
	if sum.mayRedeliver {
		s.gate.wakeUp()
	}
	defer s.deliveries.release(sum.freed) // the consumer holds the deliveries until Settle returns
	if len(sum.targets) == 0 || !s.commits.isDue(time.Now()) {
		return s.deadLetters.write(ctx, all, sum.letters)
	}
	commit := s.commits.ask()
	left, err := s.deadLetters.write(ctx, all, sum.letters)
	refused := commit.wait(ctx)
	if left = s.deliveries.appendUncommitted(all, sum.targets, left); len(left) == 0 {
		return nil, nil // the refused offsets belong to other calls of Settle, which get the error
	}
	return left, errors.Join(err, refused)
}

// release returns the memory of acked deliveries to the budget.
func (d *deliveries) release(bytes int64) {
	d.lanes.withAll(func(all []*lane) {
		d.budget.Hold(-bytes)
		d.intake.resumeInBudget(all, false)
	})
}

type settleResult struct {
	// The field targets has the offset that must be committed for each lane. The field letters has the indexes of
	// deliveries that need a dead letter. The field freed is the number of bytes of acked deliveries.
	targets map[*lane]int64
	letters []int
	freed   int64
	// mayRedeliver is true if records may have to be delivered again.
	mayRedeliver bool
}

// settle marks the records of the given settlements as acked or nacked.
func (d *deliveries) settle(all []source.Settlement) (sum settleResult) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum.targets = map[*lane]int64{}
	d.lanes.withAll(func([]*lane) {
		for i := range all {
			r, ok := all[i].Delivery.Handle.(*record)
			if !ok || r.lane.ended || r.lane.id != all[i].Delivery.Lane {
				continue
			}
			switch all[i].Kind {
			case semel.Ack:
				d.acknowledge(r, &sum)
			case semel.Nack:
				r.lane.giveBack(r, time.Now().Add(all[i].After))
				sum.mayRedeliver = true
			case semel.DeadLetter:
				sum.letters = append(sum.letters, i)
			}
		}
	})
	return sum
}

// acknowledge acks a record. The caller holds mu and lanes.mu.
func (d *deliveries) acknowledge(r *record, sum *settleResult) {
	before := r.lane.heldBytes
	r.lane.settle(r)
	sum.freed += before - r.lane.heldBytes
	sum.mayRedeliver = sum.mayRedeliver || d.full
	if r.lane.needsCommit() {
		sum.targets[r.lane] = r.lane.acked.offset
	}
	d.intake.refill(r.lane)
}

// appendUncommitted returns left, with each ack added whose lane has a confirmed offset below the target of the lane.
func (d *deliveries) appendUncommitted(all []source.Settlement, targets map[*lane]int64, left []int) []int {
	d.lanes.withAll(func([]*lane) {
		for i := range all {
			r, ok := all[i].Delivery.Handle.(*record)
			if !ok || all[i].Kind != semel.Ack || r.lane.ended {
				continue
			}
			if target, found := targets[r.lane]; found && r.lane.committed.offset < target && r.after.offset <= target {
				left = append(left, i)
			}
		}
	})
	return left
}

// deliveriesOf converts records to deliveries. The field raw of each record is set, because the records are not acked
// yet and only the caller of Fetch can ack them.
func deliveriesOf(records []*record, decoder *message.Decoder) []source.Delivery {
	if len(records) == 0 {
		return nil
	}
	out := make([]source.Delivery, len(records))
	for i, r := range records {
		m := &r.message
		if r.detached {
			m = new(semel.Message)
		} else {
			r.detach()
		}
		out[i] = source.Delivery{Message: m, Lane: r.lane.id, Before: source.Unknown, Handle: r}
		decoder.Read(r.raw, brokerID(r), &out[i])
	}
	return out
}

// brokerID returns a name that is unique for each record as long as the topic exists. The name contains the id of the
// topic. The topic's name is not a part of the result, because a later topic can have the same name.
func brokerID(r *record) string {
	b := make([]byte, 0, 64)
	if r.lane.topicID == noTopicID {
		b = append(b, r.raw.Topic...)
	} else {
		b = base64.RawURLEncoding.AppendEncode(b, r.lane.topicID[:])
	}
	b = append(b, '/')
	b = strconv.AppendInt(b, int64(r.raw.Partition), 10)
	b = append(b, '/')
	return string(strconv.AppendInt(b, r.raw.Offset, 10))
}
