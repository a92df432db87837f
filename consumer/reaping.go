package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
)

// How often a run records its progress and reaps, and asks how late copies can come.
const (
	reapEvery    = time.Minute
	horizonEvery = time.Hour
)

// How much one call of the reaper looks at, by how long the last one took: others wait
// for the store, too.
const (
	leastSlice = 50
	firstSlice = 500
	mostSlice  = 10_000
	sliceTime  = 20 * time.Millisecond
	// restFor is how many times as long as a call took nothing is done after it.
	restFor = 3
	// callTimeout ends a call that does not answer.
	callTimeout = 15 * time.Second
)

// reaping records a consumer's progress and removes what is past its retention, beside a
// run; nil if its store cannot.
type reaping struct {
	config   *Config
	reaper   contract.Reaper
	beside   beside
	source   contract.Source
	loop     bool // messages come by calls of Process: nobody knows what is still unread
	ready    func() (bool, string)
	inFlight func() int64

	slice  int
	asked  time.Time // when the horizon was asked for
	behind error     // why nothing is removed, as it was told last

	mutex  sync.Mutex
	seen   bool      // something was delivered since the last record; guarded by mutex
	oldest time.Time // of that; guarded by mutex
}

func newReaping[Tx any](e *engine[Tx], oneAttempt bool) *reaping {
	reaper, able := abilityOf[contract.Reaper](e.store)
	if !able || e.source == (noSource{ends: true}) {
		return nil
	}
	return &reaping{
		config: &e.config, reaper: reaper, beside: e.control.besides(), source: e.source, loop: oneAttempt, slice: firstSlice, asked: time.Now(),
		ready: e.reporter.state, inFlight: func() int64 { return e.snapshot().InFlight },
	}
}

// note takes note of how old what was delivered is, where the source does not tell.
func (r *reaping) note(items []*machine.Item) {
	if r == nil || r.config.Retention.Keep == 0 || len(items) == 0 {
		return
	}
	if _, tells := r.source.(contract.Dated); tells {
		return
	}
	oldest := time.Time{}
	for _, it := range items {
		if at := sentAt(&it.Handle.(*parcel).message); oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if !r.seen || oldest.Before(r.oldest) {
		r.seen, r.oldest = true, oldest
	}
}

// work records and reaps until base ends.
func (r *reaping) work(base context.Context) {
	if r.config.Retention.Keep == 0 {
		r.keepAll(base)
		if r.config.Retention.Bodies == 0 {
			return
		}
	}
	wait := time.Duration(rand.Int64N(int64(reapEvery))) // processes that start together do not reap together
	for wait += reapEvery / 2; waits(base, wait); wait = reapEvery {
		r.askHorizon(base)
		if r.record(base) {
			r.pass(base)
		}
	}
}

// keepAll tells the store that everything is kept for ever, so that nobody goes on with an
// older policy. A store that is down is told later.
func (r *reaping) keepAll(base context.Context) {
	for wait := time.Second; ; wait = min(2*wait, reapEvery) {
		ctx, cancel := context.WithTimeout(base, callTimeout)
		err := r.beside.do(ctx, func() error { return r.reaper.Retain(ctx, r.config.kept()) })
		cancel()
		if err == nil || !waits(base, wait) {
			return
		}
		if wait == reapEvery {
			r.config.Logger.Warn("the store does not take that everything is kept for ever: that is tried again", "consumer", r.config.Name, "error", err)
		}
	}
}

// ended records the progress of a run that has come to its end because nothing was left.
func (r *reaping) ended(idle bool) {
	if r == nil || !idle || r.config.Retention.Keep == 0 {
		return
	}
	r.mutex.Lock()
	r.seen = false // all of it has ended
	r.mutex.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), cutRest)
	defer cancel()
	r.record(ctx)
}

// record writes down how far the run is, where that is known; false: the store did not
// take it.
func (r *reaping) record(base context.Context) bool {
	if r.config.Retention.Keep == 0 {
		return true
	}
	lanes, known := r.ages()
	if ready, _ := r.ready(); !ready || !known {
		return true // no progress: the retention's clock stands still
	}
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	if err := r.beside.do(ctx, func() error { return r.reaper.Progressed(ctx, r.config.Name, lanes) }); err != nil {
		if base.Err() == nil {
			r.config.Logger.Warn("progress was not recorded, and nothing is removed meanwhile: that is tried again", "consumer", r.config.Name, "error", err)
		}
		return false
	}
	return true
}

// memoryLane is what is recorded of a source that tells no ages.
const memoryLane = "deliveries"

// ages are how far the lanes are; false: that is not known. A source that does not tell
// is as far as the oldest of what it has just delivered, and done when it has nothing
// more.
func (r *reaping) ages() (lanes []contract.LaneAge, known bool) {
	if dated, tells := r.source.(contract.Dated); tells {
		err := notPanicking(r.config, "Ages", func() error { lanes, known = dated.Ages(); return nil })
		return lanes, known && err == nil
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	seen, oldest := r.seen, r.oldest
	r.seen, r.oldest = false, time.Time{}
	switch {
	case seen:
		return []contract.LaneAge{{Lane: memoryLane, Oldest: oldest}}, true
	case r.loop || r.inFlight() > 0:
		return nil, false
	}
	return []contract.LaneAge{{Lane: memoryLane}}, true
}

// askHorizon asks now and then how late a copy can come. Where that has become longer than
// the retention the store removes nothing more.
func (r *reaping) askHorizon(base context.Context) {
	c := r.config
	if c.Retention.Keep == 0 || time.Since(r.asked) < horizonEvery {
		return
	}
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	h, err := c.horizon(ctx, r.source)
	if err == nil {
		kept := c.kept()
		kept.Horizon, kept.Why = h.Late, h.Why
		if h.Unlimited {
			kept.Horizon = forEver
		}
		err = r.beside.do(ctx, func() error { return r.reaper.Retain(ctx, kept) })
	}
	if err != nil && base.Err() == nil {
		c.Logger.Warn("how late copies can come is not known: that is asked again", "consumer", c.Name, "error", err)
		return
	}
	r.asked = time.Now()
}

// forEver is the horizon of a broker that drops nothing.
const forEver = 290 * 365 * 24 * time.Hour

// pass removes what is due.
func (r *reaping) pass(base context.Context) {
	if err := r.advance(base); err != nil {
		r.tell(base, err)
		return
	}
	r.behind = nil
	began, sum := time.Now(), contract.Reaped{}
	for !sum.Next.Done && time.Since(began) < reapEvery {
		took := time.Now()
		r.config.at(faults.BeforeReap, r.slice)
		done, err := r.reap(base, sum.Next)
		if err != nil {
			r.tell(base, err)
			return
		}
		if done.Elsewhere {
			return
		}
		r.config.at(faults.AfterReap, int(done.Markers))
		sum.Days += done.Days
		sum.Markers, sum.Rows, sum.Bodies, sum.Next = sum.Markers+done.Markers, sum.Rows+done.Rows, sum.Bodies+done.Bodies, done.Next
		if done.Next.Done && done.Bodies == int64(r.slice) {
			sum.Next.Done = false // there are more bodies
		}
		r.fit(time.Since(took))
		if !sum.Next.Done && !waits(base, restFor*time.Since(took)) {
			return
		}
	}
	if sum.Markers+sum.Bodies+sum.Days > 0 {
		r.config.Logger.Debug("retention run", "consumer", r.config.Name, "days", sum.Days, "markers", sum.Markers, "rows", sum.Rows, "bodies", sum.Bodies)
	}
}

// advance raises the low-water marks; without Keep only bodies are removed.
func (r *reaping) advance(base context.Context) error {
	if r.config.Retention.Keep == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	r.config.at(faults.BeforeAdvance, 0)
	return r.beside.do(ctx, func() error {
		_, err := r.reaper.Advance(ctx, r.config.Name)
		return err
	})
}

func (r *reaping) reap(base context.Context, after contract.ReapMark) (done contract.Reaped, err error) {
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	err = r.beside.do(ctx, func() (err error) {
		done, err = r.reaper.Reap(ctx, contract.Reaping{Consumer: r.config.Name, Most: r.slice, After: after})
		return err
	})
	return done, err
}

// fit sizes the next slice by how long the last one took.
func (r *reaping) fit(took time.Duration) {
	switch {
	case took > sliceTime:
		r.slice = max(r.slice/2, leastSlice)
	case took < sliceTime/2:
		r.slice = min(r.slice*2, mostSlice)
	}
}

// tell says once why nothing is removed.
func (r *reaping) tell(base context.Context, err error) {
	if base.Err() != nil || r.config.Retention.Off {
		return
	}
	if r.behind != nil && r.behind.Error() == err.Error() {
		return
	}
	r.behind = err
	if errors.Is(err, semel.ErrState) {
		r.config.Logger.Error("nothing is removed any more, and the markers grow", "consumer", r.config.Name, "error", err)
		return
	}
	r.config.Logger.Warn("the reaper failed: that is tried again", "consumer", r.config.Name, "error", err)
}
