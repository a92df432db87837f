package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// Settle implements source.Source. Acks of a lane become the group's offset as
// far as there is no gap before them; one request tells the group of all
// lanes. What is acknowledged behind a gap, or within Config.CommitInterval
// after a request, is done here and goes with a later one. Left is what the
// group has not taken, and dead letters that could not be written.
func (s *Source) Settle(ctx context.Context, all []source.Settlement) ([]int, error) {
	sum := s.deliveries.settle(all)
	if sum.rouse {
		s.gate.rouse()
	}
	defer s.deliveries.release(sum.freed) // the consumer holds them until it is told
	if len(sum.targets) == 0 || !s.commits.due(time.Now()) {
		return s.deadLetters.write(ctx, all, sum.letters)
	}
	commit := s.commits.ask()
	left, err := s.deadLetters.write(ctx, all, sum.letters)
	refused := commit.wait(ctx)
	if left = s.deliveries.uncommitted(all, sum.targets, left); len(left) == 0 {
		return nil, nil // what was refused is of others, who hear of it
	}
	return left, errors.Join(err, refused)
}

// release lets others have the memory of what is settled.
func (d *deliveries) release(bytes int64) {
	d.lanes.with(func(all []*lane) {
		d.budget.Hold(-bytes)
		d.intake.resumeInBudget(all, false)
	})
}

// sums are what settlements come to.
type sums struct {
	// targets are how far lanes must be committed, letters which settlements are
	// dead letters, and freed how many bytes are settled.
	targets map[*lane]int64
	letters []int
	freed   int64
	// rouse: there may be something to deliver again.
	rouse bool
}

// settle takes settlements down.
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

// acknowledge ends a record. Called with mu and lanes.mu held.
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

// uncommitted adds to left the acks whose lanes the group does not know to be
// so far.
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
