package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
)

// askIdleFor is the timeout of source.Info.Idle.
const askIdleFor = 10 * time.Second

// askIdle asks the source whether it has more messages. The source is asked only if the last Fetch returned nothing,
// and if the run would end unless the source has more messages.
func (t *intake) askIdle(base context.Context, e *machine.Fetched) {
	t.mutex.Lock()
	t.left = nil
	t.mutex.Unlock()
	if t.config.Machine.IdleExit == 0 && !t.atEnd(e) {
		return
	}
	if !t.mayEnd(e) {
		return
	}
	if t.info.Idle == nil {
		return
	}
	ctx, cancel := context.WithTimeout(base, askIdleFor)
	defer cancel()
	if !t.mayAsk(cancel) {
		return
	}
	var idle bool
	var left []semel.Unfinished
	err := t.config.Source("Idle", func() (err error) {
		idle, left, err = t.info.Idle(ctx)
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

// mayEnd asks Config.MayEnd whether the run may end. Between the run's last claim and the first time that
// Config.MayEnd returns true, messages may have reached the inbox. The run therefore ends only after Config.MayEnd
// has returned true a second time.
func (t *intake) mayEnd(e *machine.Fetched) (may bool) {
	if t.config.Machine.IdleExit == 0 || t.config.MayEnd == nil {
		return true
	}
	e.Err = t.config.Source("MayEnd", func() error { may = t.config.MayEnd(); return nil })
	e.Failed = e.Err != nil
	e.More = !may || !t.may
	t.may = may
	return !e.More
}

// atEnd asks the source whether its end is reached. For a source without an end, atEnd returns false.
func (t *intake) atEnd(e *machine.Fetched) (is bool) {
	if t.info.AtEnd == nil {
		return false
	}
	e.Err = t.config.Source("AtEnd", func() error { is = t.info.AtEnd(); return nil })
	e.Failed = e.Err != nil
	e.More = !is
	return is && !e.Failed
}

// mayAsk reports whether the source may be asked: the last Fetch was not cancelled, or was cancelled to end
// an idle run. If the answer is no longer needed, cancelFetch calls cancel.
func (t *intake) mayAsk(cancel context.CancelFunc) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.asking = cancel
	return !t.canceled || t.idle
}

// noteLeft stores and logs the messages that were left when the run ended because it was idle. noteLeft
// returns an error if lanes are blocked by a fault.
func (e *Engine[Tx]) noteLeft() error {
	if !e.done.Idle {
		return nil
	}
	e.intake.mutex.Lock()
	left := joinLeft(lanesWaitingForNewer(e.done), e.intake.left)
	e.intake.mutex.Unlock()
	if e.Inbox != nil {
		left = append(left, e.leftInInbox()...)
	}
	e.mutex.Lock()
	e.left = left
	e.mutex.Unlock()
	var faults []string
	for _, l := range left {
		e.config.Logger.Warn("the run ends idle, and this is left", slog.String("consumer", e.config.Consumer),
			slog.String("lane", l.Lane), slog.Int64("messages", l.Messages), slog.String("reason", l.Reason))
		if l.Fault {
			faults = append(faults, l.Lane+": "+l.Reason)
		}
	}
	if faults == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", semel.ErrUnfinished, strings.Join(faults, "; "))
}

// leftInInbox returns the rows that are left in the inbox: rows that are due later, and rows that another
// process has claimed.
func (e *Engine[Tx]) leftInInbox() []semel.Unfinished {
	ctx, cancel := context.WithTimeout(context.Background(), cutRest)
	defer cancel()
	l, err := e.Inbox.Left(ctx)
	switch {
	case err != nil:
		e.config.Logger.Warn("what waits in the inbox is not known", "consumer", e.config.Consumer, "error", err)
	case l.Messages > 0:
		return []semel.Unfinished{l}
	}
	return nil
}

// lanesWaitingForNewer returns the lanes with messages that only a newer release can process. If these messages reach
// MaxUnacked, the number of messages is unknown (-1).
func lanesWaitingForNewer(done *machine.Done) []semel.Unfinished {
	var all []semel.Unfinished
	for _, b := range done.Behind {
		l := semel.Unfinished{Lane: b.Lane.ID, Messages: int64(b.Messages), Reason: "copies of messages in other lanes that a newer release marked are held", Fault: true}
		if b.Item != nil {
			l.Reason = fmt.Sprintf("message %q of source %q is held with what waits for it: %s", b.Item.Identity, b.Item.Source, legible.Text(b.Why))
		}
		if done.Full {
			l.Messages = -1
			l.Reason += "; such messages fill max_unacked, so that nothing more was read, of other lanes either"
		}
		all = append(all, l)
	}
	return all
}

// joinLeft adds, for each lane, the number of unread messages to the number of messages that wait for a newer release.
func joinLeft(held, unread []semel.Unfinished) []semel.Unfinished {
	for _, l := range unread {
		i := slices.IndexFunc(held, func(h semel.Unfinished) bool { return h.Lane == l.Lane })
		switch {
		case i < 0:
			held = append(held, l)
		case l.Messages < 0:
			held[i].Messages = l.Messages
		case held[i].Messages >= 0:
			held[i].Messages += l.Messages
		}
	}
	return held
}
