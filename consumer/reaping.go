package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
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
	// A store whose pass reads all markers makes one in a hundredth of the retention, by
	// which its markers outlive it, or in longestRest.
	restShare   = 100
	longestRest = 6 * time.Hour
	// callTimeout ends a call that does not answer.
	callTimeout = 15 * time.Second
)

// reaping records a consumer's progress and removes what is past its retention, beside a
// run; nil if its store cannot.
type reaping struct {
	config   *settings
	reaper   store.Reaper
	beside   beside
	info     source.Info // of the source
	loop     bool        // messages come by calls of Process: nobody knows what is still unread
	ready    func() (bool, string)
	inFlight func() int64

	slice  int
	asked  time.Time     // when the horizon was asked for
	behind error         // why nothing is removed, as it was told last
	lanes  *laneAges     // of a source that does not tell
	keeps  time.Duration // until the store is told again that everything is kept; 0: it was told
	walk   *walk         // the pass that is under way, if one is
}

// walk is a pass of the reaper: when it began, and what it has removed.
type walk struct {
	began time.Time
	sum   store.Reaped
}

func newReaping[Tx any](e *engine[Tx], info source.Info, oneAttempt bool, lanes *laneAges) *reaping {
	reaper, able := e.store.(store.Reaper)
	if !able || e.source == (noSource{ends: true}) {
		return nil
	}
	return &reaping{
		config: e.config, reaper: reaper, beside: e.control.beside, info: info, loop: oneAttempt, lanes: lanes, slice: firstSlice, asked: time.Now(),
		ready: e.reporter.State, inFlight: func() int64 { return e.snapshot().InFlight },
	}
}

// task records and reaps.
func (r *reaping) task() *task {
	if r.config.Retention.Keep == 0 {
		r.keeps = time.Second
		return &task{do: r.step}
	}
	return &task{at: time.Now().Add(firstReap()), do: r.step}
}

// firstReap is random, so that processes that start together do not reap together.
func firstReap() time.Duration { return reapEvery/2 + rand.N(reapEvery) }

// step does what is next and returns how long to wait after it.
func (r *reaping) step(base context.Context) time.Duration {
	switch {
	case r.keeps > 0:
		return r.keepAll(base)
	case r.walk != nil:
		return r.reapSome(base)
	}
	r.lookAgain(base)
	r.askHorizon(base)
	if r.record(base, false) && r.config.Retention.Keep+r.config.Retention.Bodies > 0 {
		return r.reapFirst(base)
	}
	return reapEvery
}

// keepAll tells the store that everything is kept for ever, so that no process applies an older
// policy. If the store is down, a later step calls keepAll again.
func (r *reaping) keepAll(base context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	err := r.beside.do(ctx, func() error { return r.reaper.Retain(ctx, r.config.kept()) })
	if err == nil {
		r.keeps = 0
		return firstReap()
	}
	wait := r.keeps
	if r.keeps = min(2*wait, reapEvery); wait == reapEvery && base.Err() == nil {
		r.config.Logger.Warn("the store does not take that everything is kept for ever: that is tried again", "consumer", r.config.Name, "error", err)
	}
	return wait
}

// lookAgain looks, where all is kept, whether another process with another policy removes
// all the same.
func (r *reaping) lookAgain(base context.Context) {
	if r.config.judgesAge() {
		return
	}
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	_ = r.beside.do(ctx, func() error {
		removed, err := r.reaper.Removed(ctx, r.config.Name)
		r.config.noteRemoved(removed)
		return err // the next minute asks again
	})
}

// ended records the progress of a run that has come to its end because nothing was left.
func (r *reaping) ended(idle bool) {
	if r == nil || !idle || r.config.Retention.Keep == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), cutRest)
	defer cancel()
	r.record(ctx, true)
}

// record writes down how far the run is, where that is known; false: the store did not
// take it. over: the run has ended, and nothing was left.
func (r *reaping) record(base context.Context, over bool) bool {
	if r.config.Retention.Keep == 0 {
		return true
	}
	lanes, known := r.ages(over)
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

// ages are how far the lanes are; false: that is not known. over: nothing was left.
func (r *reaping) ages(over bool) (lanes []source.LaneAge, known bool) {
	if dated := r.info.Ages; dated != nil {
		err := r.config.guard.Source("Ages", func() error { lanes, known = dated(); return nil })
		return lanes, known && err == nil
	}
	return r.lanes.take(r.loop || r.inFlight() > 0, over)
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
	h, err := c.horizon(ctx, r.info)
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

// reapFirst begins a pass, which removes what is due.
func (r *reaping) reapFirst(base context.Context) time.Duration {
	if err := r.advance(base); err != nil {
		r.tell(base, err)
		return reapEvery
	}
	r.behind, r.walk = nil, &walk{began: time.Now()}
	return r.reapSome(base)
}

// reapSome removes one slice, and ends the pass if nothing is left or its time is over.
func (r *reaping) reapSome(base context.Context) time.Duration {
	pass, began := r.walk, time.Now()
	r.config.guard.At(faults.BeforeReap, r.slice)
	o := store.Reaping{Consumer: r.config.Name, Most: r.slice, After: pass.sum.Next, Rest: min(r.config.Retention.Keep/restShare, longestRest)}
	done, err := r.reap(base, o)
	if err != nil || done.Elsewhere {
		if r.walk = nil; err != nil {
			r.tell(base, err)
		}
		return reapEvery
	}
	r.config.guard.At(faults.AfterReap, int(done.Markers))
	over := pass.sum.Add(o, done)
	took := time.Since(began)
	r.fit(took)
	if rest := restFor * took; !over && time.Since(pass.began)+rest < reapEvery {
		return rest
	}
	r.walk = nil
	if sum := pass.sum; sum.Markers+sum.Bodies+sum.Days > 0 {
		r.config.Logger.Debug("retention run", "consumer", r.config.Name, "days", sum.Days, "markers", sum.Markers, "rows", sum.Rows, "bodies", sum.Bodies)
	}
	return reapEvery
}

// advance raises the low-water marks; without Keep only bodies are removed.
func (r *reaping) advance(base context.Context) error {
	if r.config.Retention.Keep == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	r.config.guard.At(faults.BeforeAdvance, 0)
	return r.beside.do(ctx, func() error {
		_, err := r.reaper.Advance(ctx, r.config.Name)
		return err
	})
}

func (r *reaping) reap(base context.Context, o store.Reaping) (done store.Reaped, err error) {
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	err = r.beside.do(ctx, func() (err error) {
		done, err = r.reaper.Reap(ctx, o)
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
