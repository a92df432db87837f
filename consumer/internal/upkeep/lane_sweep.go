package upkeep

import (
	"context"
	"time"

	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/internal/admin"
)

// sweepEvery is how often lines are looked through, sweepAgain when that has failed.
const (
	sweepEvery = time.Hour
	sweepAgain = time.Minute
)

// LaneSweep looks after the lines of the inbox: those that are kept are swept at the start and
// now and then; those of a policy that was another are dissolved.
type LaneSweep struct {
	guard.Guard
	Lines admin.Lines
	// Kept: the policy keeps lines.
	Kept bool
	// Within is how long one look may take.
	Within time.Duration

	next time.Time
}

// Work looks after the lines if it is time to. One goroutine calls it. A nil LaneSweep does nothing.
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

// sweep frees what waits behind others in the inbox, where those were removed by hand.
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

// dissolve lets what keeps an order in the inbox go on without it, where the policy asks
// for none any more: a version would else wait for one that is kept behind it.
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
