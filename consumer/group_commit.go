package consumer

import (
	"context"
	"slices"
	"sync"
	"time"
)

// together lets calls of the store that come while one is under way share the next one:
// what many workers begin and end at once becomes few transactions. Nobody waits for
// others to come. There is no goroutine for it: whoever is first carries those behind it,
// and then hands over to the first of those that came meanwhile.
type together[In, Out any] struct {
	// carry does it for all of them, in their order.
	carry func(ctx context.Context, all []In) ([]Out, error)
	// alone reports whether an error says that nothing was done, and may be one's of them
	// only: then each does it for itself.
	alone func(error) bool
	// pace, if not nil, says how many share a call, and for how long one waits for that
	// under way; without it those that wait do so until it has ended.
	pace *pace
	// limit is how many share a call at most; 0: mostTogether.
	limit int

	mutex   sync.Mutex
	waiting []*rider[In, Out] // guarded by mutex
	told    bool              // the first that waits was told to lead; guarded by mutex
	under   int               // how many lead; guarded by mutex
}

// mostTogether is how many share one call at most.
const mostTogether = 256

// rider is a call that waits to be carried.
type rider[In, Out any] struct {
	in    In
	lead  chan struct{} // closed when it is to lead
	done  chan struct{} // closed when it was carried
	out   Out
	err   error
	apart bool // it is to be carried by itself
}

// do does it for one. When ctx ends first nobody knows whether it was done.
func (t *together[In, Out]) do(ctx context.Context, in In) (out Out, err error) {
	r := &rider[In, Out]{in: in, lead: make(chan struct{}), done: make(chan struct{})}
	t.mutex.Lock()
	t.waiting = append(t.waiting, r)
	t.next()
	t.mutex.Unlock()
	patience, stop := t.pace.patience()
	defer func() { stop() }()
	for waits := true; waits; {
		waits = false
		select {
		case <-r.lead:
			if ctx.Err() != nil { // others would end with it
				t.leave(r)
				return out, ctx.Err()
			}
			t.leads(ctx)
		case <-patience:
			t.hurry() // whoever leads may have no room for this one: then it hurries again
			patience, stop = t.pace.patience()
			waits = true
		case <-r.done:
		case <-ctx.Done():
			t.leave(r)
			return out, ctx.Err()
		}
	}
	if r.apart {
		_ = t.carryAll(ctx, []*rider[In, Out]{r})
	}
	return r.out, r.err
}

// next tells the first that waits to lead, if nobody does or no more fit; the mutex is held.
func (t *together[In, Out]) next() {
	if len(t.waiting) > 0 && (t.under == 0 || t.pace != nil && len(t.waiting) >= t.most()) {
		t.tell()
	}
}

// most is how many may share the next call.
func (t *together[In, Out]) most() int {
	most := mostTogether
	if t.limit > 0 {
		most = min(most, t.limit)
	}
	if t.pace != nil {
		most = min(most, t.pace.most())
	}
	return most
}

// tell tells the first that waits to lead; the mutex is held.
func (t *together[In, Out]) tell() {
	if !t.told {
		t.told = true
		close(t.waiting[0].lead)
	}
}

// hurry is for those that have waited long enough for what is under way.
func (t *together[In, Out]) hurry() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.waiting) > 0 {
		t.tell()
	}
}

// leads carries the first that wait, the caller among them.
func (t *together[In, Out]) leads(ctx context.Context) {
	t.mutex.Lock()
	n := min(len(t.waiting), t.most())
	taken := slices.Clone(t.waiting[:n])
	t.waiting = slices.Delete(t.waiting, 0, n)
	t.told = false
	t.under++
	t.next()
	t.mutex.Unlock()
	began := time.Now()
	err := t.carryAll(ctx, taken)
	t.mutex.Lock()
	t.under--
	if err == nil {
		t.pace.took(n, time.Since(began))
	}
	t.next()
	t.mutex.Unlock()
	for _, r := range taken {
		r.apart = err != nil && n > 1 && t.alone(err)
		close(r.done)
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
		t.told = false
		t.next()
	default:
	}
}
