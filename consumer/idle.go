package consumer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/machine"
)

// askIdleFor is how long a source may take to say whether it has more.
const askIdleFor = 10 * time.Second

// askIdle asks a source that brought nothing whether it has more, where the run
// would end for that.
func (t *intake) askIdle(base context.Context, e *machine.Fetched) {
	idler, able := t.source.(contract.Idler)
	if !able || t.config.IdleExit == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(base, askIdleFor)
	defer cancel()
	if !t.mayAsk(cancel) {
		return
	}
	var idle bool
	var left []semel.Left
	err := notPanicking(&t.config, "Idle", func() (err error) {
		idle, left, err = idler.Idle(ctx)
		return err
	})
	if err != nil && !errors.Is(ctx.Err(), context.Canceled) {
		e.Failed, e.Err = true, fmt.Errorf("semel: whether the source has more is not known: %w", err)
	}
	e.More = !idle
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.left = left
}

// mayAsk reports whether somebody waits for the answer: the last Fetch was not
// cancelled, or was to end the run. cancel ends the question when nobody does
// any more.
func (t *intake) mayAsk(cancel context.CancelFunc) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.asking = cancel
	return !t.canceled || t.idle
}

// noteLeft notes and logs what is left where the run ended idle. The error is
// of lanes that stand still.
func (e *engine[Tx]) noteLeft() error {
	if !e.done.Idle {
		return nil
	}
	e.intake.mutex.Lock()
	left := e.intake.left
	e.intake.mutex.Unlock()
	e.mutex.Lock()
	e.left = left
	e.mutex.Unlock()
	var faults []string
	for _, l := range left {
		e.config.Logger.Warn("the run ends idle, and this was not read", slog.String("consumer", e.config.Name),
			slog.String("lane", l.Lane), slog.Int64("messages", l.Messages), slog.String("reason", l.Reason))
		if l.Fault {
			faults = append(faults, l.Lane+": "+l.Reason)
		}
	}
	if faults == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", semel.ErrLeft, strings.Join(faults, "; "))
}
