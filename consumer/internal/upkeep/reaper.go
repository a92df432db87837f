package upkeep

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

// reapEvery is the interval at which a run records its progress and removes old markers. horizonEvery is the
// interval at which a run asks the source how late duplicates can arrive.
const (
	reapEvery    = time.Minute
	horizonEvery = time.Hour
)

// Limits for the number of rows that one call of the reaper, which removes old markers, examines. The number depends on
// the duration of the last call, because the store has other users too.
const (
	leastSlice = 50
	firstSlice = 500
	mostSlice  = 10_000
	sliceTime  = 20 * time.Millisecond
	// restFor is the length of the pause after a call, as a multiple of the duration of the call.
	restFor = 3
	// A store that reads all markers in a pass makes a pass each time that a hundredth of the retention has passed, and
	// at least one pass per longestRest. Markers may be kept longer by the time between two passes.
	restShare   = 100
	longestRest = 6 * time.Hour
	// callTimeout is the timeout of a call. lastWithin is the timeout of a call at the end of a run.
	callTimeout = 15 * time.Second
	lastWithin  = time.Second
)

// Reaper records the progress of a run and removes markers, rows and bodies that are older than the
// retention.
type Reaper struct {
	ReaperOptions

	slice  int
	asked  time.Time     // when the source was last asked how late duplicates can arrive
	behind error         // the last logged error that prevents removal
	keeps  time.Duration // delay before the next keepAll; 0 after a successful keepAll
	walk   *walk         // the current pass; nil if there is none
}

// ReaperOptions are the settings of a run that its Reaper uses.
type ReaperOptions struct {
	*Retention
	Store store.Reaper
	Turns Turns
	// Info is the information about the source.
	Info source.Info
	// ByCalls means that the messages come from calls of Process, so it is unknown which messages are unread.
	ByCalls bool
	// Lanes contains the progress of the lanes, if the source does not report that progress.
	Lanes *LaneAges
	// Ready reports whether the consumer works.
	Ready func() (bool, string)
	// InFlight returns the number of deliveries that have not ended.
	InFlight func() int64
}

// walk is a pass in which the reaper removes old markers: the start time and the numbers of removed markers, rows and
// bodies.
type walk struct {
	began time.Time
	sum   store.Reaped
}

func NewReaper(o ReaperOptions) *Reaper {
	return &Reaper{ReaperOptions: o, slice: firstSlice, asked: time.Now()}
}

// Task returns the task that records progress and removes old markers.
func (r *Reaper) Task() *Task {
	if r.Keep == 0 {
		r.keeps = time.Second
		return &Task{step: r.step}
	}
	return &Task{at: time.Now().Add(firstReap()), step: r.step}
}

// firstReap returns a random delay, so that processes that start together do not remove markers at the same time.
func firstReap() time.Duration { return reapEvery/2 + rand.N(reapEvery) }

// step records progress or removes some old markers, and returns how long to wait before the next call of step.
func (r *Reaper) step(base context.Context) time.Duration {
	switch {
	case r.keeps > 0:
		return r.keepAll(base)
	case r.walk != nil:
		return r.reapSome(base)
	}
	r.checkOtherPolicies(base)
	r.askHorizon(base)
	if r.record(base, false) && r.Keep+r.Bodies > 0 {
		return r.reapFirst(base)
	}
	return reapEvery
}

// keepAll stores the policy that all markers are kept forever, so that no process applies an older policy. If the store
// is down, a later step calls keepAll again.
func (r *Reaper) keepAll(base context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	err := r.Turns.Do(ctx, func() error { return r.Store.Retain(ctx, r.toStored()) })
	if err == nil {
		r.keeps = 0
		return firstReap()
	}
	wait := r.keeps
	if r.keeps = min(2*wait, reapEvery); wait == reapEvery && base.Err() == nil {
		r.Logger.Warn("the store does not take that everything is kept for ever: that is tried again", "consumer", r.Consumer, "error", err)
	}
	return wait
}

// checkOtherPolicies checks, if this process keeps all markers, whether another process with another policy has removed
// markers.
func (r *Reaper) checkOtherPolicies(base context.Context) {
	if r.judgesAge() {
		return
	}
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	_ = r.Turns.Do(ctx, func() error {
		removed, err := r.Store.Removed(ctx, r.Consumer)
		r.noteRemoved(removed)
		return err // the next step asks the store again
	})
}

// Ended records the progress of a run that has ended because no message was left.
func (r *Reaper) Ended(idle bool) {
	if r == nil || !idle || r.Keep == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWithin)
	defer cancel()
	r.record(ctx, true)
}

// record stores the progress of the run if the progress is known. record returns false if the store returned an error.
// The parameter over means that the run has ended and no message is left.
func (r *Reaper) record(base context.Context, over bool) bool {
	if r.Keep == 0 {
		return true
	}
	lanes, known := r.ages(over)
	if ready, _ := r.Ready(); !ready || !known {
		return true // without a record of progress, no further marker becomes old enough to be removed
	}
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	if err := r.Turns.Do(ctx, func() error { return r.Store.Progressed(ctx, r.Consumer, lanes) }); err != nil {
		if base.Err() == nil {
			r.Logger.Warn("progress was not recorded, and nothing is removed meanwhile: that is tried again", "consumer", r.Consumer, "error", err)
		}
		return false
	}
	return true
}

// ages returns the progress of the lanes. The result known is false if the progress is not known. The parameter over
// means that no message is left.
func (r *Reaper) ages(over bool) (lanes []source.LaneAge, known bool) {
	if dated := r.Info.Ages; dated != nil {
		err := r.Source("Ages", func() error { lanes, known = dated(); return nil })
		return lanes, known && err == nil
	}
	return r.Lanes.take(r.ByCalls || r.InFlight() > 0, over)
}

// askHorizon asks the source once an hour how late a duplicate can arrive, and stores the answer. If a duplicate can
// arrive after the retention, the store stops removing markers.
func (r *Reaper) askHorizon(base context.Context) {
	if r.Keep == 0 || time.Since(r.asked) < horizonEvery {
		return
	}
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	h, err := r.Horizon(ctx, r.Info)
	if err == nil {
		kept := r.toStored()
		kept.Horizon, kept.Why = h.Late, h.Why
		if h.Unlimited {
			kept.Horizon = forEver
		}
		err = r.Turns.Do(ctx, func() error { return r.Store.Retain(ctx, kept) })
	}
	if err != nil && base.Err() == nil {
		r.Logger.Warn("how late copies can come is not known: that is asked again", "consumer", r.Consumer, "error", err)
		return
	}
	r.asked = time.Now()
}

// forEver is the stored value for a broker that never drops messages.
const forEver = 290 * 365 * 24 * time.Hour

// reapFirst begins a pass, which removes all markers, rows and bodies that are older than the retention.
func (r *Reaper) reapFirst(base context.Context) time.Duration {
	if err := r.advance(base); err != nil {
		r.logCause(base, err)
		return reapEvery
	}
	r.behind, r.walk = nil, &walk{began: time.Now()}
	return r.reapSome(base)
}

// reapSome removes one slice of old markers. If no old marker is left, or if the time of the pass is over, reapSome
// ends the pass.
func (r *Reaper) reapSome(base context.Context) time.Duration {
	pass, began := r.walk, time.Now()
	r.At(faults.BeforeReap, r.slice)
	o := store.Reaping{Consumer: r.Consumer, Most: r.slice, After: pass.sum.Next, Rest: min(r.Keep/restShare, longestRest)}
	done, err := r.reap(base, o)
	if err != nil || done.Elsewhere {
		if r.walk = nil; err != nil {
			r.logCause(base, err)
		}
		return reapEvery
	}
	r.At(faults.AfterReap, int(done.Markers))
	over := pass.sum.Add(o, done)
	took := time.Since(began)
	r.setSliceSize(took)
	if rest := restFor * took; !over && time.Since(pass.began)+rest < reapEvery {
		return rest
	}
	r.walk = nil
	if sum := pass.sum; sum.Markers+sum.Bodies+sum.Days > 0 {
		r.Logger.Debug("retention run", "consumer", r.Consumer, "days", sum.Days, "markers", sum.Markers, "rows", sum.Rows, "bodies", sum.Bodies)
	}
	return reapEvery
}

// advance raises the low-water marks, the times before which markers may be removed. Without Keep, only bodies are
// removed, and advance does nothing.
func (r *Reaper) advance(base context.Context) error {
	if r.Keep == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	r.At(faults.BeforeAdvance, 0)
	return r.Turns.Do(ctx, func() error {
		_, err := r.Store.Advance(ctx, r.Consumer)
		return err
	})
}

func (r *Reaper) reap(base context.Context, o store.Reaping) (done store.Reaped, err error) {
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	err = r.Turns.Do(ctx, func() (err error) {
		done, err = r.Store.Reap(ctx, o)
		return err
	})
	return done, err
}

// setSliceSize sets the number of rows of the next slice, depending on the duration of the last slice.
func (r *Reaper) setSliceSize(took time.Duration) {
	switch {
	case took > sliceTime:
		r.slice = max(r.slice/2, leastSlice)
	case took < sliceTime/2:
		r.slice = min(r.slice*2, mostSlice)
	}
}

// logCause logs, once for each cause, why no markers are removed.
func (r *Reaper) logCause(base context.Context, err error) {
	if base.Err() != nil || r.Off {
		return
	}
	if r.behind != nil && r.behind.Error() == err.Error() {
		return
	}
	r.behind = err
	if errors.Is(err, semel.ErrState) {
		r.Logger.Error("nothing is removed any more, and the markers grow", "consumer", r.Consumer, "error", err)
		return
	}
	r.Logger.Warn("the reaper failed: that is tried again", "consumer", r.Consumer, "error", err)
}
