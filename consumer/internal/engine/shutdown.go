package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/internal/worker"
)

// leaveWithin is the maximum time that a run takes to end after the drain. All parts of the run share the time
// leaveWithin. The run does not wait longer for functions that ignore their context. Users rely on 5 s, because the
// documentation states this time.
const leaveWithin = 5 * time.Second

// cutRest is the last part of leaveWithin: the time for the end of the run after connections were closed.
const cutRest = time.Second

// waitsAfter is the time after which a stop logs the handlers and commits that it waits for.
const waitsAfter = 2 * time.Second

func (e *Engine[Tx]) shutDown() error {
	e.cancel()
	over := time.Now().Add(leaveWithin)
	e.noteSkipping(true)
	left := e.noteLeft()
	e.reaper.Ended(e.done.Idle && left == nil)
	for _, p := range e.pilots {
		close(p.orders)
	}
	var crew error
	var leaving worker.Group
	leaving.Go(func() { crew = e.leaveCrew(over) })
	source := e.leaveSource(over)
	leaving.Wait()
	err := errors.Join(e.behindErr, left, source, crew, e.leaveInbox(over))
	if e.done.Halted {
		err = errors.Join(&haltError{key: delivery.KeyOf(e.config.Consumer, e.done.Item), reason: e.done.Reason, err: e.done.Err, fromInbox: e.done.Item.Claim != nil}, err)
	}
	return err
}

// leaveCrew waits for the workers. At the time over, leaveCrew closes the connections of batches that still run, so
// that closing the store need not wait until the server has finished their statements.
func (e *Engine[Tx]) leaveCrew(over time.Time) error {
	if e.crew.WaitFor(time.Until(over) - cutRest) {
		return nil
	}
	err := e.stuckError()
	for _, p := range e.pilots {
		p.abandon()
	}
	e.crew.WaitFor(time.Until(over))
	return err
}

// abandon closes the connection of the current batch.
func (p *pilot[Tx]) abandon() {
	p.mutex.Lock()
	f := p.flight
	p.mutex.Unlock()
	if f != nil {
		f.Kill()
	}
}

// leaveSource waits for the source's running calls and closes the source. leaveSource runs at the same time as
// leaveCrew, which may use all of the time. leaveSource waits for running calls at most half of the time, so that the
// source's Close has the other half.
func (e *Engine[Tx]) leaveSource(over time.Time) error {
	ended := e.group.WaitFor((time.Until(over) - cutRest) / 2)
	err := e.closeSource(over)
	if !ended {
		err = errors.Join(err, fmt.Errorf("semel: consumer %s: the source's Fetch or Settle ignores its context and still runs; unsettled messages are delivered again", e.config.Consumer))
	}
	return err
}

// leaveInbox releases the claims that this process still has after the workers have ended.
func (e *Engine[Tx]) leaveInbox(over time.Time) error {
	if e.Inbox == nil {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.Background(), over)
	defer cancel()
	return e.Inbox.Close(ctx)
}

// closeSource closes the source, and waits at most until the time over.
func (e *Engine[Tx]) closeSource(over time.Time) error {
	var closing worker.Group
	ended := make(chan error, 1)
	closing.Go(func() {
		ctx, cancel := context.WithDeadline(context.Background(), over.Add(-cutRest))
		defer cancel()
		ended <- e.config.Source("Close", func() error { return e.Source.Close(ctx) })
	})
	if !closing.WaitFor(time.Until(over)) {
		return fmt.Errorf("semel: consumer %s: the source's Close ignores its context and still runs; unsettled messages are delivered again", e.config.Consumer)
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("semel: closing the source: %w", err)
	}
	return nil
}

// noteWaiting logs the handlers and commits that a stop waits for.
func (e *Engine[Tx]) noteWaiting() {
	handlers, commits := 0, 0
	for _, p := range e.pilots {
		switch {
		case p.committing.Load():
			commits++
		case p.handling.Load():
			handlers++
		}
	}
	e.config.Logger.Info("stopping: still waits for what runs", "consumer", e.config.Consumer, "handlers", handlers, "commits", commits,
		"unsettled", e.Snapshot().InFlight, "at_most", (e.config.Machine.Drain + leaveWithin - waitsAfter).Round(time.Second).String())
}

// stuckError returns an error that names the handlers and commits that still run after the run has ended.
func (e *Engine[Tx]) stuckError() error {
	var err error
	handlers := 0
	for _, p := range e.pilots {
		switch {
		case p.committing.Load():
			err = fmt.Errorf("semel: consumer %s: a commit did not end in time and its outcome is unknown; its messages are unsettled and will be delivered again, and their markers then decide", e.config.Consumer)
		case p.handling.Load():
			handlers++
		}
	}
	if handlers > 0 {
		err = errors.Join(err, fmt.Errorf("semel: consumer %s: %d handlers ignore their context and still run; their connections were cut and nothing of them is committed", e.config.Consumer, handlers))
	}
	if err == nil {
		err = fmt.Errorf("semel: consumer %s: the store ignores its context and is still running; none of those messages is settled", e.config.Consumer)
	}
	return err
}
