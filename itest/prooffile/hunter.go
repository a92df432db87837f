//go:build unix

package prooffile

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// hunter kills one process.
type hunter struct {
	db     *database
	random *rand.Rand
	// blind kills at a random moment, whatever the process does then.
	blind bool
	// mark is how many effects must stand before the kill.
	mark int
}

// maxTries is how often a process is frozen in the hope of an open transaction.
const maxTries = 500

var errEndedFirst = errors.New("semel ended by itself before it was killed")

// kill waits until the process has done its share and kills it. It reports
// whether the process had a write transaction open when it died.
func (h hunter) kill(ctx context.Context, p *process) (bool, error) {
	if err := h.untilMark(ctx, p); err != nil {
		return false, err
	}
	for try := 1; ; try++ {
		pause(ctx, time.Duration(h.random.Int64N(int64(5*time.Millisecond))))
		alive, err := p.freeze()
		if err != nil {
			return false, err
		}
		if !alive {
			return false, errEndedFirst
		}
		open, err := h.db.writing(ctx)
		if err != nil {
			return false, err
		}
		if open || h.blind || try == maxTries {
			return open, p.kill()
		}
		if err := p.thaw(); err != nil {
			return false, err
		}
	}
}

// untilMark waits until the process has committed something of its own and the
// effects stand at the mark. What a process writes before that (opening,
// recovering what the last one left) is not taken for its work.
func (h hunter) untilMark(ctx context.Context, p *process) error {
	first, err := h.db.effects(ctx)
	if err != nil {
		return err
	}
	for {
		if alive, err := p.running(); err != nil || !alive {
			return errors.Join(err, errEndedFirst)
		}
		now, err := h.db.effects(ctx)
		if err != nil {
			return err
		}
		if now > first && now >= h.mark {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		pause(ctx, 2*time.Millisecond)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
