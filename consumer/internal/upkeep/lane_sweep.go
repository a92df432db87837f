package upkeep

import (
	"context"
	"time"

	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/internal/admin"
)

// sweepEvery is the interval between two sweeps. sweepAgain is the interval after a sweep that failed.
const (
	sweepEvery = time.Hour
	sweepAgain = time.Minute
)

// LaneSweep maintains the queues of the inbox (one for each key or lane), at the start of a run and then once an hour.
// If the policy blocks messages behind a waiting message, LaneSweep unblocks messages that wait for rows that no longer
// exist. If the policy blocks no messages, LaneSweep removes queues that an earlier policy has left.
type LaneSweep struct {
	guard.Guard
	Lines admin.Lines
	// Kept means that the policy blocks messages behind a waiting message (OnParkedBlock).
	Kept bool
	// Within is the timeout of one sweep.
	Within time.Duration

	next time.Time
}

// Work makes a sweep if a sweep is due. Calls of Work must not overlap. A nil LaneSweep does nothing.
func (s *LaneSweep) Work(base context.Context) {
	if s == nil || time.Now().Before(s.next) {
		return
	}
	ctx, cancel := context.WithTimeout(base, s.Within)
	defer cancel()
	look := s.dissolve
	if s.Kept {
		look = s.sweep
	}
	next := sweepEvery
	if !look(ctx) {
		next = sweepAgain
	}
	s.next = time.Now().Add(next)
}

// sweep unblocks messages that wait in the inbox behind rows that were removed by hand.
func (s *LaneSweep) sweep(ctx context.Context) bool {
	freed, err := s.Lines.Sweep(ctx)
	if err != nil {
		s.Logger.Warn("what waits behind removed rows was not looked for: that is tried again", "consumer", s.Consumer, "error", err)
		return false
	}
	if freed > 0 {
		s.Logger.Warn("messages waited behind others that are gone from the inbox by other means than semel's: they are due", "consumer", s.Consumer, "messages", freed)
	}
	return true
}

// dissolve removes the queues of the inbox if the policy no longer requires an order. If the queues stayed, version 2
// could wait for version 1, while version 1 waits behind version 2 in a queue.
func (s *LaneSweep) dissolve(ctx context.Context) bool {
	rows, err := s.Lines.Dissolve(ctx, s.Consumer)
	if rows > 0 {
		s.Logger.Warn("messages in the inbox kept an order that the policy does not ask for any more: they keep it no longer", "consumer", s.Consumer, "messages", rows)
	}
	if err != nil {
		s.Logger.Warn("messages in the inbox keep an order that the policy does not ask for any more, until it can be taken from them: that is tried again", "consumer", s.Consumer, "error", err)
	}
	return err == nil
}
