package semel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/worker"
)

// leaveAfter is how long a run that is over waits for what it has cancelled.
const leaveAfter = 5 * time.Second

// cutAfter is how long it waits once more for what it has cut.
const cutAfter = 3 * time.Second

// waitsAfter is how long a stop goes on in silence.
const waitsAfter = 2 * time.Second

func (e *engine[Tx]) shutDown() error {
	e.cancel()
	e.noteSkipping(true)
	left := e.noteLeft()
	for _, p := range e.pilots {
		close(p.orders)
	}
	crew := e.leaveCrew()
	group := e.group.WaitFor(leaveAfter)
	err := errors.Join(left, e.closeSource(), crew)
	if !group {
		err = errors.Join(err, fmt.Errorf("semel: consumer %s: the source's Fetch or Settle ignores its context and still runs; what it has not settled comes again", e.config.Name))
	}
	if e.done.Halted {
		p := e.done.Item.Handle.(*parcel)
		err = errors.Join(&haltError{key: p.key, reason: Reason(e.done.Reason), err: e.done.Err}, err)
	}
	return err
}

// leaveCrew waits for what the pilots are in. What has not ended then is cut:
// a store that closes its connections would wait for as long as the server is
// at a batch that nobody wants any more.
func (e *engine[Tx]) leaveCrew() error {
	if e.crew.WaitFor(leaveAfter) {
		return nil
	}
	err := e.stuck()
	for _, p := range e.pilots {
		p.abandon()
	}
	e.crew.WaitFor(cutAfter)
	return err
}

// abandon cuts the flight under way, whatever the pilot is in.
func (p *pilot[Tx]) abandon() {
	p.mutex.Lock()
	f := p.flight
	p.mutex.Unlock()
	if f != nil {
		f.batch.Kill()
	}
}

// closeSource closes the source, and leaves one alone that does not end.
func (e *engine[Tx]) closeSource() error {
	var closing worker.Group
	ended := make(chan error, 1)
	closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), leaveAfter)
		defer cancel()
		ended <- notPanicking(&e.config, "Close", func() error { return e.source.Close(ctx) })
	})
	if !closing.WaitFor(leaveAfter + cutAfter) {
		return fmt.Errorf("semel: consumer %s: the source's Close ignores its context and still runs; what is not settled comes again", e.config.Name)
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("semel: closing the source: %w", err)
	}
	return nil
}

// noteWaiting says what a stop waits for.
func (e *engine[Tx]) noteWaiting() {
	handlers, commits := 0, 0
	for _, p := range e.pilots {
		switch {
		case p.committing.Load():
			commits++
		case p.handling.Load():
			handlers++
		}
	}
	e.config.Logger.Info("stopping: still waits for what runs", "consumer", e.config.Name, "handlers", handlers, "commits", commits,
		"unsettled", e.snapshot().InFlight, "at_most", (e.config.Drain - waitsAfter).Round(time.Second).String())
}

// stuck says what still runs although the run is over.
func (e *engine[Tx]) stuck() error {
	var err error
	handlers := 0
	for _, p := range e.pilots {
		switch {
		case p.committing.Load():
			err = fmt.Errorf("semel: consumer %s: a commit did not end in time and its outcome is unknown; its messages are unsettled, come again, and are then judged by their markers", e.config.Name)
		case p.handling.Load():
			handlers++
		}
	}
	if handlers > 0 {
		err = errors.Join(err, fmt.Errorf("semel: consumer %s: %d handlers ignore their context and still run; their connections were cut and nothing of them is committed", e.config.Name, handlers))
	}
	if err == nil {
		err = fmt.Errorf("semel: consumer %s: the store ignores its context and still works; nothing of it is settled", e.config.Name)
	}
	return err
}
