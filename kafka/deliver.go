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

// deliveries delivers records of lanes to the consumer and settles them.
type deliveries struct {
	budget *hook.Budget
	lanes  *lanes
	intake *intake

	// mu guards the fields below; lanes.mu is taken while it is held.
	mu   sync.Mutex
	turn int // position in the order of lanes
	// full: nothing more may be delivered before a settlement.
	full bool
}

// tooMuchHidden reports whether nothing may be delivered before a settlement: the consumer counts only the kept part of
// a record that is too large, but its dead letter needs the whole record. The caller holds lanes.mu.
func (d *deliveries) tooMuchHidden(all []*lane) bool {
	var hidden int64
	for _, l := range all {
		hidden += l.hidden
	}
	return hidden >= d.budget.Most() && hidden > 0
}

// found is the result of a search for a delivery: the delivery, or the time of the next search.
type found struct {
	records []*record
	bytes   int64
	due     time.Time
	// enough: do not poll.
	enough bool
	err    error
}

// mostBack is how many deliveries may be nacked before polling waits.
const mostBack = 10_000

// take takes deliverable records: lanes take turns, and in a lane nacked records that are due come first.
func (d *deliveries) take(most source.Bound) (f found) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lanes.with(func(all []*lane) {
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
			back += len(l.back)
		}
		f.enough = d.full || back >= mostBack
	})
	return f
}

func (l *lane) take(f *found, most source.Bound, now time.Time) {
	if !l.blocked() {
		l.takeBack(f, most, now)
		l.takeReady(f, most, now)
	}
}

// add takes a record if it fits, and reports whether it did. The first record always fits.
func (f *found) add(r *record, most source.Bound, now time.Time) bool {
	if len(f.records) > 0 && (len(f.records) >= most.Messages || f.bytes+r.size > most.Bytes) {
		return false
	}
	f.bytes += r.size
	f.records = append(f.records, r)
	r.state, r.at = delivered, now
	r.lane.unsettled++
	r.lane.hidden += r.hidden
	r.lane.delivered = max(r.lane.delivered, r.after.offset)
	return true
}

func (l *lane) takeBack(f *found, most source.Bound, now time.Time) {
	kept := l.back[:0]
	for _, r := range l.back {
		switch {
		case r.state != handedBack:
		case r.at.After(now):
			if f.due.IsZero() || r.at.Before(f.due) {
				f.due = r.at
			}
			kept = append(kept, r)
		case !f.add(r, most, now):
			kept = append(kept, r)
		}
	}
	clear(l.back[len(kept):])
	l.back = kept
}

func (l *lane) takeReady(f *found, most source.Bound, now time.Time) {
	n := 0
	for n < len(l.ready) && f.add(l.ready[n], most, now) {
		l.ready[n] = nil
		n++
	}
	l.ready = l.ready[n:]
}

// Settle implements source.Source. Acks of a lane become the group's offset up to the first unsettled record; one
// request commits all lanes. An ack after an unsettled record, or within Config.CommitInterval after a request, is
// accepted and committed later. Settle returns the acks that the group did not accept, and the dead letters that could
// not be written.
func (s *Source) Settle(ctx context.Context, all []source.Settlement) ([]int, error) {
	sum := s.deliveries.settle(all)
	if sum.rouse {
		s.gate.rouse()
	}
	defer s.deliveries.release(sum.freed) // the consumer holds them until Settle returns
	if len(sum.targets) == 0 || !s.commits.due(time.Now()) {
		return s.deadLetters.write(ctx, all, sum.letters)
	}
	commit := s.commits.ask()
	left, err := s.deadLetters.write(ctx, all, sum.letters)
	refused := commit.wait(ctx)
	if left = s.deliveries.uncommitted(all, sum.targets, left); len(left) == 0 {
		return nil, nil // refused offsets belong to other settlements, whose callers get the error
	}
	return left, errors.Join(err, refused)
}

// release returns the memory of settled deliveries to the budget.
func (d *deliveries) release(bytes int64) {
	d.lanes.with(func(all []*lane) {
		d.budget.Hold(-bytes)
		d.intake.resumeInBudget(all, false)
	})
}

// sums is the result of settling.
type sums struct {
	// targets is how far lanes must be committed. letters are the settlements that are dead letters. freed is how many
	// bytes were settled.
	targets map[*lane]int64
	letters []int
	freed   int64
	// rouse: there may be records to deliver again.
	rouse bool
}

// settle applies settlements to the records.
func (d *deliveries) settle(all []source.Settlement) (sum sums) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sum.targets = map[*lane]int64{}
	d.lanes.with(func([]*lane) {
		for i := range all {
			r, ok := all[i].Delivery.Handle.(*record)
			if !ok || r.lane.gone || r.lane.id != all[i].Delivery.Lane {
				continue
			}
			switch all[i].Kind {
			case semel.Ack:
				d.acknowledge(r, &sum)
			case semel.Nack:
				r.lane.giveBack(r, time.Now().Add(all[i].After))
				sum.rouse = true
			case semel.DeadLetter:
				sum.letters = append(sum.letters, i)
			}
		}
	})
	return sum
}

// acknowledge acks a record. The caller holds mu and lanes.mu.
func (d *deliveries) acknowledge(r *record, sum *sums) {
	before := r.lane.held
	r.lane.settle(r)
	sum.freed += before - r.lane.held
	sum.rouse = sum.rouse || d.full
	if r.lane.dirty() {
		sum.targets[r.lane] = r.lane.done.offset
	}
	d.intake.refill(r.lane)
}

// uncommitted adds to left the acks in lanes whose offsets the group has not confirmed up to their target.
func (d *deliveries) uncommitted(all []source.Settlement, targets map[*lane]int64, left []int) []int {
	d.lanes.with(func([]*lane) {
		for i := range all {
			r, ok := all[i].Delivery.Handle.(*record)
			if !ok || all[i].Kind != semel.Ack || r.lane.gone {
				continue
			}
			if target, found := targets[r.lane]; found && r.lane.committed.offset < target && r.after.offset <= target {
				left = append(left, i)
			}
		}
	})
	return left
}

// deliveriesOf makes deliveries of records. The records are unsettled, and only the caller of Fetch can settle them, so
// raw is not nil.
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

// brokerID returns a name for a record that is unique as long as its topic exists. brokerID contains the id of the
// topic and not its name, which another topic can have later.
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
