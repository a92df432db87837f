package consumer

import (
	"context"
	"slices"
	"sync"
)

// together lets calls of the store that come while one is under way share the next one:
// what many workers begin and end at once becomes few transactions. Nobody waits for
// others to come. There is no goroutine for it: whoever is first carries those behind it,
// and then hands over to the first of those that came meanwhile.
type together[In, Out any] struct {
	// carry does it for all of them, in their order.
	carry func(ctx context.Context, all []In) ([]Out, error)
	// alone reports whether an error says that nothing was done, and may be one's of them
	// only: then each is carried by itself.
	alone func(error) bool

	mutex   sync.Mutex
	waiting []*rider[In, Out] // the first of them leads, or will; guarded by mutex
	under   bool              // somebody leads; guarded by mutex
}

// mostTogether is how many share one call at most.
const mostTogether = 256

// rider is a call that waits to be carried.
type rider[In, Out any] struct {
	in   In
	lead chan struct{} // closed when it is to lead
	done chan struct{} // closed when it was carried
	out  Out
	err  error
}

// do does it for one. When ctx ends first nobody knows whether it was done.
func (t *together[In, Out]) do(ctx context.Context, in In) (out Out, err error) {
	r := &rider[In, Out]{in: in, lead: make(chan struct{}), done: make(chan struct{})}
	t.mutex.Lock()
	t.waiting = append(t.waiting, r)
	if !t.under {
		t.under = true
		close(r.lead)
	}
	t.mutex.Unlock()
	select {
	case <-r.lead:
		if ctx.Err() != nil { // others would end with it
			t.leave(r)
			return out, ctx.Err()
		}
		t.leads(ctx)
	case <-r.done:
	case <-ctx.Done():
		t.leave(r)
		return out, ctx.Err()
	}
	return r.out, r.err
}

// leads carries the first that wait, the caller among them.
func (t *together[In, Out]) leads(ctx context.Context) {
	t.mutex.Lock()
	n := min(len(t.waiting), mostTogether)
	taken := slices.Clone(t.waiting[:n])
	t.waiting = slices.Delete(t.waiting, 0, n)
	t.mutex.Unlock()
	if err := t.carryAll(ctx, taken); err != nil && n > 1 && t.alone(err) {
		for i := range taken {
			_ = t.carryAll(ctx, taken[i:i+1])
		}
	}
	for _, r := range taken {
		close(r.done)
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.handOver()
}

// handOver lets the next one lead; the mutex is held.
func (t *together[In, Out]) handOver() {
	if t.under = len(t.waiting) > 0; t.under {
		close(t.waiting[0].lead)
	}
}

// carryAll carries some, and keeps their answers.
func (t *together[In, Out]) carryAll(ctx context.Context, some []*rider[In, Out]) error {
	all := make([]In, len(some))
	for i, r := range some {
		all[i] = r.in
	}
	out, err := t.carry(ctx, all)
	for i, r := range some {
		if r.err = err; err == nil {
			r.out = out[i]
		}
	}
	return err
}

// leave is for one whose context has ended: if it was to lead, the next one does.
func (t *together[In, Out]) leave(r *rider[In, Out]) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	at := slices.Index(t.waiting, r)
	if at < 0 { // it is carried, or was
		return
	}
	t.waiting = slices.Delete(t.waiting, at, at+1)
	select {
	case <-r.lead:
		t.handOver()
	default:
	}
}
