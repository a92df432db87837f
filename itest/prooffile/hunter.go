//go:build unix

package prooffile

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel/itest/processes"
)

// hunter kills one process.
type hunter struct {
	db     *processes.SQLite
	random *rand.Rand
	// blind kills at a random moment, whatever the process does then.
	blind bool
	// mark is how many effects must stand before the kill.
	mark int
}

// kill waits until the process has done its share and kills it. It reports
// whether the process had a write transaction open when it died.
func (h hunter) kill(ctx context.Context, p *processes.Process) (bool, error) {
	if err := h.untilMark(ctx, p); err != nil {
		return false, err
	}
	open, err := h.db.Catch(ctx, p, h.random, h.blind)
	if err != nil {
		return false, err
	}
	return open, p.Kill()
}

// untilMark waits until the process has committed something of its own and the
// effects stand at the mark. What a process writes before that (opening,
// recovering what the last one left) is not taken for its work.
func (h hunter) untilMark(ctx context.Context, p *processes.Process) error {
	first, err := h.db.Effects(ctx)
	if err != nil {
		return err
	}
	for {
		if alive, err := p.Running(); err != nil || !alive {
			return errors.Join(err, processes.ErrEnded)
		}
		now, err := h.db.Effects(ctx)
		if err != nil {
			return err
		}
		if now > first && now >= h.mark {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		processes.Pause(ctx, 2*time.Millisecond)
	}
}
