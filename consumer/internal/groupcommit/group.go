// Package groupcommit combines concurrent calls of a store, so that what many workers begin
// and commit at the same time becomes few transactions.
package groupcommit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Group combines calls that arrive while another call is under way: they share the next one.
// No caller waits for others to arrive. A Group has no goroutine of its own: one of the
// callers, the leader, makes the call for itself and for those behind it; then the first of
// the callers that arrived meanwhile leads.
type Group[In, Out any] struct {
	// call makes one call for all inputs and returns their results in the same order.
	call func(ctx context.Context, all []In) ([]Out, error)
	// alone reports whether an error says that nothing was done and that one input may have
	// caused the error. Then each caller makes its own call.
	alone func(error) bool
	// pace says how many callers share a call, and how long a caller waits for the call under
	// way. Without it callers wait until that call has ended.
	pace *pace
	// limit is the largest number of inputs of one call; 0: mostTogether.
	limit int

	mutex    sync.Mutex
	waiting  []*caller[In, Out] // guarded by mutex
	notified bool               // the first caller of waiting was notified to lead; guarded by mutex
	leading  int                // how many callers lead; guarded by mutex
}

// mostTogether is the largest number of callers that share one call.
const mostTogether = 256

// New returns a Group that makes its calls with call, which gets at most limit inputs; 0:
// 256. alone reports whether an error of a shared call says that nothing was done and that one
// input may have caused the error: then each caller makes its own call.
func New[In, Out any](call func(ctx context.Context, all []In) ([]Out, error), alone func(error) bool, limit int) *Group[In, Out] {
	return &Group[In, Out]{call: call, alone: alone, limit: limit, pace: &pace{}}
}

// caller is a caller of Do whose input waits for a call.
type caller[In, Out any] struct {
	in    In
	lead  chan struct{} // closed when the caller is to lead
	done  chan struct{} // closed when its result is known
	out   Out
	err   error
	apart bool // the caller makes its own call
}

// Do returns the result of a call with this input, which may share the call with others. If
// ctx ends first, the call may have been made or not.
func (g *Group[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	c := &caller[In, Out]{in: in, lead: make(chan struct{}), done: make(chan struct{})}
	g.mutex.Lock()
	g.waiting = append(g.waiting, c)
	g.next()
	g.mutex.Unlock()
	patience, stop := g.pace.patience()
	defer func() { stop() }()
	for waits := true; waits; {
		waits = false
		select {
		case <-c.lead:
			if ctx.Err() != nil { // the call of the others would end with ctx
				g.leave(c)
				return out, ctx.Err()
			}
			g.leads(ctx)
		case <-patience:
			g.hurry() // the leader may have no room for this caller, which then hurries again
			patience, stop = g.pace.patience()
			waits = true
		case <-c.done:
		case <-ctx.Done():
			g.leave(c)
			return out, ctx.Err()
		}
	}
	if c.apart {
		_ = g.callFor(ctx, []*caller[In, Out]{c})
	}
	return c.out, c.err
}

// next notifies the first caller that waits to lead, if no caller leads or no more fit into
// the next call. The caller holds the mutex.
func (g *Group[In, Out]) next() {
	if len(g.waiting) > 0 && (g.leading == 0 || g.pace != nil && len(g.waiting) >= g.most()) {
		g.notify()
	}
}

// most is how many callers may share the next call.
func (g *Group[In, Out]) most() int {
	most := mostTogether
	if g.limit > 0 {
		most = min(most, g.limit)
	}
	if g.pace != nil {
		most = min(most, g.pace.most())
	}
	return most
}

// notify notifies the first caller that waits to lead. The caller holds the mutex.
func (g *Group[In, Out]) notify() {
	if !g.notified {
		g.notified = true
		close(g.waiting[0].lead)
	}
}

// hurry has the first caller lead, because one has waited long enough for the call under way.
func (g *Group[In, Out]) hurry() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if len(g.waiting) > 0 {
		g.notify()
	}
}

// leads makes one call for the first callers that wait: the leader and those behind it.
func (g *Group[In, Out]) leads(ctx context.Context) {
	g.mutex.Lock()
	n := min(len(g.waiting), g.most())
	taken := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	g.notified = false
	g.leading++
	g.next()
	g.mutex.Unlock()
	began := time.Now()
	err := g.callFor(ctx, taken)
	g.mutex.Lock()
	g.leading--
	if err == nil {
		g.pace.took(n, time.Since(began))
	}
	g.next()
	g.mutex.Unlock()
	for _, c := range taken {
		c.apart = err != nil && n > 1 && g.alone(err)
		close(c.done)
	}
}

// callFor makes one call for these callers and stores their results.
func (g *Group[In, Out]) callFor(ctx context.Context, these []*caller[In, Out]) error {
	all := make([]In, len(these))
	for i, c := range these {
		all[i] = c.in
	}
	out, err := g.call(ctx, all)
	for i, c := range these {
		if c.err = err; err == nil {
			c.out = out[i]
		}
	}
	return err
}

// leave removes a caller whose context has ended. If it was to lead, the next caller does.
func (g *Group[In, Out]) leave(c *caller[In, Out]) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	at := slices.Index(g.waiting, c)
	if at < 0 { // a leader has taken it
		return
	}
	g.waiting = slices.Delete(g.waiting, at, at+1)
	select {
	case <-c.lead:
		g.notified = false
		g.next()
	default:
	}
}
