package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/timing"
)

const (
	// controlEvery is how often it is read what operators want, and controlWithin how
	// long a store may take to say it.
	controlEvery  = 2 * time.Second
	controlWithin = 10 * time.Second
	// claimsAgain is how long the inbox is left alone while the consumer is paused.
	claimsAgain = 250 * time.Millisecond
	// processAgain is when a message comes again that Process handed back, because the
	// consumer is paused.
	processAgain = 30 * time.Second
)

// control keeps to what operators want of the consumer: while it is paused nothing is
// fetched and nothing claimed, and never more than the limit allows. What was taken
// before goes on, so the machine needs to know nothing of it.
type control struct {
	config   *settings
	store    admin.Controls
	beside   beside
	reporter *reporter

	mutex  sync.Mutex
	wanted admin.Control // as it was read last; guarded by mutex
	// changed is closed when wanted changes; guarded by mutex.
	changed chan struct{}
	// fetching ends the Fetch under way; nil: there is none, or it has been ended.
	// Guarded by mutex.
	fetching context.CancelFunc
	bucket   bucket // guarded by mutex
	// failing: what is wanted could not be read the last time; of who reads.
	failing bool
}

// newControl returns nil where the store keeps none.
func newControl(c *settings, store any, b beside, n *reporter) *control {
	controls, able := store.(admin.Controls)
	if !able {
		return nil
	}
	return &control{config: c, store: controls, beside: b, reporter: n, changed: make(chan struct{})}
}

// besides is what who works beside the batches has in common with it.
func (g *control) besides() beside {
	if g == nil {
		return newBeside()
	}
	return g.beside
}

// start reads what is wanted before anything is taken: a consumer that is paused must
// not take messages because its store did not answer.
func (g *control) start(ctx context.Context) error {
	if g == nil {
		return nil
	}
	if err := g.read(ctx); err != nil {
		return fmt.Errorf("semel: consumer %q cannot start: whether it is paused is not known: %w", g.config.Name, err)
	}
	return nil
}

// watch reads again and again what is wanted, until base ends. What was wanted last
// stays while the store does not answer.
func (g *control) watch(base context.Context) {
	for timing.Wait(base, controlEvery) {
		err := g.read(base)
		switch {
		case base.Err() != nil:
			return
		case err != nil && !g.failing:
			g.config.Logger.Warn("whether operators want the consumer to pause cannot be read; what they wanted last stays", "consumer", g.config.Name, "error", err)
		case err == nil && g.failing:
			g.config.Logger.Info("what operators want can be read again", "consumer", g.config.Name)
		}
		g.failing = err != nil
	}
}

func (g *control) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, controlWithin)
	defer cancel()
	var wanted admin.Control
	err := g.beside.do(ctx, func() (err error) {
		wanted, err = g.store.Control(ctx, g.config.controlled())
		return err
	})
	if err == nil {
		g.want(wanted)
	}
	return err
}

// want takes over what is wanted, and tells of it where it is something else.
func (g *control) want(wanted admin.Control) {
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

// isPaused reports whether the consumer is paused.
func (g *control) isPaused() bool {
	if g == nil {
		return false
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return g.wanted.Paused
}

// admitFetch waits until a Fetch may begin, and says for how many messages of most; 0:
// ctx has ended before. end is called where something else is wanted meanwhile.
func (g *control) admitFetch(ctx context.Context, most int, end context.CancelFunc) int {
	if g == nil {
		return most
	}
	for {
		n, wait, changed := g.ask(most, end)
		if n > 0 {
			return n
		}
		if wait == 0 { // paused
			g.reporter.SourceNotAsked()
		}
		if !comes(ctx, changed, wait) {
			return 0
		}
	}
}

// ask says how many messages may be taken now, or how long to wait; 0: until changed.
func (g *control) ask(most int, end context.CancelFunc) (n int, wait time.Duration, changed <-chan struct{}) {
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

// fetched takes that a Fetch has brought so many messages.
func (g *control) fetched(n int) {
	if g == nil {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.fetching = nil
	g.bucket.take(n)
}

// admitClaim says how many rows of most may be claimed now, or in how long to ask again.
func (g *control) admitClaim(most int) (n int, wait time.Duration) {
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

// claimed takes that so many rows were claimed.
func (g *control) claimed(n int) {
	if g == nil {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.bucket.take(n)
}

// handsBack is what Process answers for n messages while the consumer is paused; nil
// while it is not.
func (g *control) handsBack(n int) []Disposition {
	if !g.isPaused() {
		return nil
	}
	all := make([]Disposition, n)
	for i := range all {
		all[i] = Disposition{Kind: semel.Nack, After: processAgain, Reason: semel.ReasonPaused}
	}
	return all
}

// reasons say of a consumer that is ready what operators want of it.
func (g *control) reasons() (all []string) {
	if g == nil {
		return nil
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.wanted.Paused {
		all = append(all, "paused by "+ordered(g.wanted.Pause))
	}
	if g.wanted.PerSecond > 0 {
		all = append(all, fmt.Sprintf("limited to %d messages a second by %s", g.wanted.PerSecond, ordered(g.wanted.Limit)))
	}
	return all
}

// ordered is who ordered something, and why, on one line.
func ordered(o admin.Order) string {
	return legible.Printable(o.By) + ": " + legible.Printable(o.Why)
}

// comes waits for changed, and where wait is not 0 no longer than that; it reports
// whether ctx lasts.
func comes(ctx context.Context, changed <-chan struct{}, wait time.Duration) bool {
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
func (g *control) logPaused(wanted admin.Control) {
	by := ordered(wanted.Pause)
	if wanted.Paused {
		g.notify(wanted, "paused by "+by)
		g.config.Logger.Warn("paused: nothing more is taken, and what is in memory goes on to its end", "consumer", g.config.Name, "by", by)
		return
	}
	g.notify(wanted, "resumed by "+by)
	g.config.Logger.Info("resumed: messages are taken again", "consumer", g.config.Name, "by", by)
}

// logLimited reports how many messages a second the consumer fetches from now on.
func (g *control) logLimited(wanted admin.Control) {
	by := ordered(wanted.Limit)
	g.notify(wanted, "limited by "+by)
	if wanted.PerSecond > 0 {
		g.config.Logger.Warn("limited: this process takes so many messages a second", "consumer", g.config.Name, "per_second", wanted.PerSecond, "by", by)
		return
	}
	g.config.Logger.Info("not limited any more", "consumer", g.config.Name, "by", by)
}

// notify passes the operators' wishes to the observers.
func (g *control) notify(wanted admin.Control, why string) {
	e := semel.Event{Kind: semel.EventControl, Messages: wanted.PerSecond, Err: errors.New(why)}
	if wanted.Paused {
		e.Reason = semel.ReasonPaused
	}
	g.reporter.Notify(e)
}
