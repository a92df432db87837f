// Package control applies an operator's pause and limit to a consumer. Pause and limit are read from the store.
package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/timing"
)

const (
	// ReadEvery is the interval at which the controls are read. ReadWithin is the timeout for reading the controls
	// once.
	ReadEvery  = 2 * time.Second
	ReadWithin = 10 * time.Second
	// claimsAgain is the interval at which a paused consumer checks again whether it may claim rows of the
	// inbox.
	claimsAgain = 250 * time.Millisecond
)

// Options are the settings of a Control.
type Options struct {
	// Consumer is the name of the consumer in the log. Stored is the name under which the store keeps the controls.
	Consumer, Stored string
	Logger           *slog.Logger
	// Turn calls the function f when no other maintenance uses the store. Batches may use the store at the same time.
	Turn func(ctx context.Context, f func() error) error
	// Notify passes an event to the observers.
	Notify func(semel.Event)
	// NotAsked is called while the source is not used because the consumer is paused.
	NotAsked func()
}

// Control applies an operator's pause and limit. While the consumer is paused, no message is fetched or
// claimed. With a limit, the consumer never fetches or claims more messages than the limit allows. Messages
// in flight are finished, so the machine does not depend on controls. A nil Control has no pause and no
// limit.
type Control struct {
	options Options
	store   admin.Controls

	mutex  sync.Mutex
	wanted admin.Control // as read last; guarded by mutex
	// changed is closed when wanted changes; guarded by mutex.
	changed chan struct{}
	// fetching cancels the current Fetch. fetching is nil if there is no Fetch, or if the Fetch was
	// cancelled. Guarded by mutex.
	fetching context.CancelFunc
	bucket   bucket // guarded by mutex
	// readFailed means that the controls could not be read the last time; used by Watch.
	readFailed bool
}

// New returns a Control, or nil if the store keeps no controls.
func New(store any, o Options) *Control {
	controls, able := store.(admin.Controls)
	if !able {
		return nil
	}
	return &Control{options: o, store: controls, changed: make(chan struct{})}
}

// Start reads the controls before the first fetch. If the controls cannot be read, Start returns an error,
// because a paused consumer must not fetch.
func (g *Control) Start(ctx context.Context) error {
	if g == nil {
		return nil
	}
	if err := g.read(ctx); err != nil {
		return fmt.Errorf("semel: consumer %q cannot start: its pause and limit cannot be read: %w", g.options.Consumer, err)
	}
	return nil
}

// Watch reads the controls repeatedly until base ends. While the store does not respond, the last controls
// stay in force.
func (g *Control) Watch(base context.Context) {
	for timing.Wait(base, ReadEvery) {
		err := g.read(base)
		switch {
		case base.Err() != nil:
			return
		case err != nil && !g.readFailed:
			g.options.Logger.Warn("operator controls cannot be read; the last ones stay in force", "consumer", g.options.Consumer, "error", err)
		case err == nil && g.readFailed:
			g.options.Logger.Info("operator controls are readable again", "consumer", g.options.Consumer)
		}
		g.readFailed = err != nil
	}
}

// read reads the controls once.
func (g *Control) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ReadWithin)
	defer cancel()
	var wanted admin.Control
	err := g.options.Turn(ctx, func() (err error) {
		wanted, err = g.store.Control(ctx, g.options.Stored)
		return err
	})
	if err == nil {
		g.applyControls(wanted)
	}
	return err
}

// applyControls applies the controls and reports the changes.
func (g *Control) applyControls(wanted admin.Control) {
	g.mutex.Lock()
	before := g.wanted
	paused, limited := wanted.Paused != before.Paused, wanted.PerSecond != before.PerSecond
	g.wanted = wanted
	if limited {
		g.bucket.limit(wanted.PerSecond, time.Now())
	}
	if paused || limited {
		close(g.changed)
		g.changed = make(chan struct{})
	}
	if (wanted.Paused || limited) && g.fetching != nil {
		g.fetching()
		g.fetching = nil
	}
	g.mutex.Unlock()
	if limited {
		g.logLimited(wanted)
	}
	if paused {
		g.logPaused(wanted)
	}
}

// Paused reports whether the consumer is paused.
func (g *Control) Paused() bool {
	if g == nil {
		return false
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.wanted.Paused
}

// AdmitFetch waits until a Fetch may begin, and returns the number of messages that may be fetched. The parameter most
// is an upper limit for the result. The result 0 means that ctx has ended. If the controls change during the Fetch, the
// function end is called.
func (g *Control) AdmitFetch(ctx context.Context, most int, end context.CancelFunc) int {
	if g == nil {
		return most
	}
	for {
		n, wait, changed := g.ask(most, end)
		if n > 0 {
			return n
		}
		if wait == 0 { // paused
			g.options.NotAsked()
		}
		if !waitForChange(ctx, changed, wait) {
			return 0
		}
	}
}

// ask returns how many messages may be fetched now, or how long to wait. If the result wait is 0, the caller must wait
// until the channel changed is closed.
func (g *Control) ask(most int, end context.CancelFunc) (n int, wait time.Duration, changed <-chan struct{}) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.wanted.Paused {
		return 0, 0, g.changed
	}
	if n, wait = g.bucket.ask(most, time.Now()); n > 0 {
		g.fetching = end
	}
	return n, wait, g.changed
}

// Fetched records that a Fetch returned n messages.
func (g *Control) Fetched(n int) {
	if g == nil {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.fetching = nil
	g.bucket.take(n)
}

// AdmitClaim returns how many rows may be claimed now. The parameter most is an upper limit for the result. If no row
// may be claimed, AdmitClaim returns how long to wait before the next call.
func (g *Control) AdmitClaim(most int) (n int, wait time.Duration) {
	if g == nil {
		return most, 0
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.wanted.Paused {
		return 0, claimsAgain
	}
	return g.bucket.ask(most, time.Now())
}

// Claimed records that n rows were claimed.
func (g *Control) Claimed(n int) {
	if g == nil {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.bucket.take(n)
}

// Reasons describes the pause and the limit, for the result of Ready.
func (g *Control) Reasons() (all []string) {
	if g == nil {
		return nil
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.wanted.Paused {
		all = append(all, "paused by "+describeOrder(g.wanted.Pause))
	}
	if g.wanted.PerSecond > 0 {
		all = append(all, fmt.Sprintf("limited to %d messages a second by %s", g.wanted.PerSecond, describeOrder(g.wanted.Limit)))
	}
	return all
}

// describeOrder returns a text on one line: who changed a setting, and why.
func describeOrder(o admin.Order) string {
	return legible.Printable(o.By) + ": " + legible.Printable(o.Why)
}

// waitForChange waits until the channel changed is closed. If the parameter wait is not 0, waitForChange waits at most
// that long. If ctx has ended, waitForChange returns false.
func waitForChange(ctx context.Context, changed <-chan struct{}, wait time.Duration) bool {
	var passed <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		passed = t.C
	}
	select {
	case <-changed:
	case <-passed:
	case <-ctx.Done():
		return false
	}
	return ctx.Err() == nil
}

// logPaused reports that the consumer is paused or resumed.
func (g *Control) logPaused(wanted admin.Control) {
	by := describeOrder(wanted.Pause)
	if wanted.Paused {
		g.notify(wanted, "paused by "+by)
		g.options.Logger.Warn("paused: no new messages are fetched; messages in flight are finished", "consumer", g.options.Consumer, "by", by)
		return
	}
	g.notify(wanted, "resumed by "+by)
	g.options.Logger.Info("resumed: messages are fetched again", "consumer", g.options.Consumer, "by", by)
}

// logLimited reports the new limit of messages a second.
func (g *Control) logLimited(wanted admin.Control) {
	by := describeOrder(wanted.Limit)
	g.notify(wanted, "limited by "+by)
	if wanted.PerSecond > 0 {
		g.options.Logger.Warn("limited: this process fetches at most per_second messages a second", "consumer", g.options.Consumer, "per_second", wanted.PerSecond, "by", by)
		return
	}
	g.options.Logger.Info("limit removed", "consumer", g.options.Consumer, "by", by)
}

// notify passes the controls to the observers.
func (g *Control) notify(wanted admin.Control, why string) {
	e := semel.Event{Kind: eventkind.Control, Messages: wanted.PerSecond, Err: errors.New(why)}
	if wanted.Paused {
		e.Reason = semel.ReasonPaused
	}
	g.options.Notify(e)
}
