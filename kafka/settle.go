package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// Settle implements contract.Source. Acks of a lane become the group's offset as
// far as there is no gap before them; one request tells the group of all
// lanes. What is acknowledged behind a gap, or within Config.CommitInterval
// after a request, is done here and goes with a later one. Left is what the
// group has not taken, and dead letters that could not be written.
func (s *Source) Settle(ctx context.Context, all []contract.Settlement) ([]int, error) {
	targets, letters, freed, rouse := s.lanes.settle(all)
	if rouse {
		s.gate.rouse()
	}
	defer s.lanes.release(freed) // the consumer holds them until it is told
	if len(targets) == 0 || !s.commits.due(time.Now()) {
		return s.deadLetters.write(ctx, all, letters)
	}
	commit := s.commits.ask()
	left, err := s.deadLetters.write(ctx, all, letters)
	refused := commit.wait(ctx)
	if left = s.lanes.uncommitted(all, targets, left); len(left) == 0 {
		return nil, nil // what was refused is of others, who hear of it
	}
	return left, errors.Join(err, refused)
}

// release lets others have the memory of what is settled.
func (ls *lanes) release(bytes int64) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	ls.budget.Hold(-bytes)
	ls.resumeInBudget(false)
}

// settle takes settlements down. It returns how far lanes must be committed,
// which settlements are dead letters, how many bytes are settled, and whether
// there may be something to deliver again.
func (ls *lanes) settle(all []contract.Settlement) (targets map[*lane]int64, letters []int, freed int64, rouse bool) {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	targets = map[*lane]int64{}
	for i := range all {
		r, ok := all[i].Delivery.Handle.(*record)
		if !ok || r.lane.gone || r.lane.id != all[i].Delivery.Lane {
			continue
		}
		switch all[i].Kind {
		case semel.Ack:
			before := r.lane.held
			r.lane.settle(r)
			freed += before - r.lane.held
			rouse = rouse || ls.full
			if r.lane.dirty() {
				targets[r.lane] = r.lane.done.offset
			}
			ls.refill(r.lane)
		case semel.HandBack:
			before := len(r.lane.back)
			r.lane.giveBack(r, time.Now().Add(all[i].After))
			ls.back += len(r.lane.back) - before
			rouse = true
		case semel.DeadLetter:
			letters = append(letters, i)
		}
	}
	return targets, letters, freed, rouse
}

// refill resumes a lane whose window was full.
func (ls *lanes) refill(l *lane) {
	if l.full && len(l.window) <= resumeWindow {
		l.full = false
		ls.reflow(l)
	}
}

// uncommitted adds to left the acks whose lanes the group does not know to be
// so far.
func (ls *lanes) uncommitted(all []contract.Settlement, targets map[*lane]int64, left []int) []int {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	for i := range all {
		r, ok := all[i].Delivery.Handle.(*record)
		if !ok || all[i].Kind != semel.Ack || r.lane.gone {
			continue
		}
		if target, found := targets[r.lane]; found && r.lane.committed.offset < target && r.after.offset <= target {
			left = append(left, i)
		}
	}
	return left
}
