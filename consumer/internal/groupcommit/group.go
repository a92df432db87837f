// Package groupcommit combines concurrent calls of a store, so that many workers need few transactions.
package groupcommit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Group combines calls: inputs that arrive while a call is running share the next call. No caller waits until others
// arrive. A Group has no goroutine of its own. The leader, one of the callers, makes the call for all callers that
// share it. After the leader's call, the first caller that arrived during the call becomes the leader.
type Group[In, Out any] struct {
	// call makes one call for all inputs and returns their results in the same order.
	call func(ctx context.Context, all []In) ([]Out, error)
	// shouldSplit reports whether an error means that the call changed nothing and that one of the inputs may
	// have caused the error. After such an error each caller makes its own call.
	shouldSplit func(error) bool
	// pace determines how many callers share a call, and how long a caller waits for the running call.
	// Without a pace, callers wait until the running call has ended.
	pace *pace
	// limit is the maximum number of inputs of one call; 0 means mostTogether.
	limit int

	mutex    sync.Mutex
	waiting  []*caller[In, Out] // guarded by mutex
	notified bool               // the first caller in waiting is the next leader; guarded by mutex
	leading  int                // number of leaders; guarded by mutex
}

// mostTogether is the largest number of callers that share one call.
const mostTogether = 256

// New returns a Group that makes its calls with the function call, which gets at most limit inputs; 0 means 256. The
// function shouldSplit reports whether an error of a shared call means that the call changed nothing and that one input
// may have caused the error. After such an error each caller makes its own call.
func New[In, Out any](call func(ctx context.Context, all []In) ([]Out, error), shouldSplit func(error) bool, limit int) *Group[In, Out] {
	return &Group[In, Out]{call: call, shouldSplit: shouldSplit, limit: limit, pace: &pace{}}
}

// caller is a caller of Do whose input waits for a call.
type caller[In, Out any] struct {
	in       In
	lead     chan struct{} // closed when the caller becomes the leader
	done     chan struct{} // closed when the result of the caller is known
	out      Out
	err      error
	separate bool // the caller makes its own call
}

// Do returns the result of a call with the input in. Do may combine the input with the inputs of other callers. If ctx
// ends first, the call may or may not have been made.
func (g *Group[In, Out]) Do(ctx context.Context, in In) (out Out, err error) {
	c := &caller[In, Out]{in: in, lead: make(chan struct{}), done: make(chan struct{})}
	g.mutex.Lock()
	g.waiting = append(g.waiting, c)
	g.electLeader()
	g.mutex.Unlock()
	patience, stop := g.pace.patience()
	defer func() { stop() }()
	for waits := true; waits; {
		waits = false
		select {
		case <-c.lead:
			if ctx.Err() != nil { // a call of this caller would end with ctx
				g.leave(c)
				return out, ctx.Err()
			}
			g.callAsLeader(ctx)
		case <-patience:
			g.hurry() // the leader may not have taken this caller, which then calls hurry again
			patience, stop = g.pace.patience()
			waits = true
		case <-c.done:
		case <-ctx.Done():
			g.leave(c)
			return out, ctx.Err()
		}
	}
	if c.separate {
		_ = g.callFor(ctx, []*caller[In, Out]{c})
	}
	return c.out, c.err
}

// electLeader makes the first waiting caller the leader if there is no leader, or if there are enough waiting
// callers for a full call. The caller of electLeader has locked the mutex.
func (g *Group[In, Out]) electLeader() {
	if len(g.waiting) > 0 && (g.leading == 0 || g.pace != nil && len(g.waiting) >= g.maxCallers()) {
		g.notify()
	}
}

// maxCallers returns how many callers may share the next call.
func (g *Group[In, Out]) maxCallers() int {
	most := mostTogether
	if g.limit > 0 {
		most = min(most, g.limit)
	}
	if g.pace != nil {
		most = min(most, g.pace.maxCallers())
	}
	return most
}

// notify makes the first waiting caller the leader. The caller of notify has locked the mutex.
func (g *Group[In, Out]) notify() {
	if !g.notified {
		g.notified = true
		close(g.waiting[0].lead)
	}
}

// hurry makes the first waiting caller the leader, because a caller has waited long enough for the running call.
func (g *Group[In, Out]) hurry() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if len(g.waiting) > 0 {
		g.notify()
	}
}

// callAsLeader makes one call for the leader and for the callers that wait after the leader.
func (g *Group[In, Out]) callAsLeader(ctx context.Context) {
	g.mutex.Lock()
	n := min(len(g.waiting), g.maxCallers())
	taken := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	g.notified = false
	g.leading++
	g.electLeader()
	g.mutex.Unlock()
	began := time.Now()
	err := g.callFor(ctx, taken)
	g.mutex.Lock()
	g.leading--
	if err == nil {
		g.pace.recordCall(n, time.Since(began))
	}
	g.electLeader()
	g.mutex.Unlock()
	for _, c := range taken {
		c.separate = err != nil && n > 1 && g.shouldSplit(err)
		close(c.done)
	}
}

// callFor makes one call for the given callers and stores their results.
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

// leave removes a caller whose context has ended. If the removed caller was the leader, the next waiting caller becomes
// the leader.
func (g *Group[In, Out]) leave(c *caller[In, Out]) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	at := slices.Index(g.waiting, c)
	if at < 0 { // a leader has taken the caller
		return
	}
	g.waiting = slices.Delete(g.waiting, at, at+1)
	select {
	case <-c.lead:
		g.notified = false
		g.electLeader()
	default:
	}
}
