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

// reapEvery is how often a run records its progress and reaps, horizonEvery how often it asks how late
// copies can come.
const (
	reapEvery    = time.Minute
	horizonEvery = time.Hour
)

// How many rows one call of the reaper looks at. The number follows from the time that the last call
// took, because others use the store, too.
const (
	leastSlice = 50
	firstSlice = 500
	mostSlice  = 10_000
	sliceTime  = 20 * time.Millisecond
	// restFor: after a call, the reaper rests restFor times as long as the call took.
	restFor = 3
	// A store that reads all markers in a pass makes one pass in each hundredth of the retention, but
	// at least one in longestRest. Markers may be kept longer by that time.
	restShare   = 100
	longestRest = 6 * time.Hour
	// callTimeout is how long a call may take, lastWithin how long a call at the end of a run may take.
	callTimeout = 15 * time.Second
	lastWithin  = time.Second
)

// Reaper records the progress of a run and removes what is past its retention.
type Reaper struct {
	ReaperOptions

	slice  int
	asked  time.Time     // when the source was last asked for the horizon
	behind error         // the last logged error because of which nothing is removed
	keeps  time.Duration // the wait before the next keepAll; 0: the store knows that everything is kept
	walk   *walk         // the pass under way, nil if there is none
}

// ReaperOptions are what a Reaper needs of a run.
type ReaperOptions struct {
	*Retention
	Store store.Reaper
	Turns Turns
	// Info is what the source says of itself.
	Info source.Info
	// ByCalls: the messages come by calls of Process, so it is unknown what is still unread.
	ByCalls bool
	// Lanes has the progress of the lanes if the source does not report it.
	Lanes *LaneAges
	// Ready reports whether the consumer works.
	Ready func() (bool, string)
	// InFlight returns how many deliveries have not ended.
	InFlight func() int64
}

// walk is a pass of the reaper: its start time, and the numbers of removed markers, rows and
// bodies.
type walk struct {
	began time.Time
	sum   store.Reaped
}

// NewReaper returns a Reaper for one run.
func NewReaper(o ReaperOptions) *Reaper {
	return &Reaper{ReaperOptions: o, slice: firstSlice, asked: time.Now()}
}

// Task returns the task that records progress and reaps.
func (r *Reaper) Task() *Task {
	if r.Keep == 0 {
		r.keeps = time.Second
		return &Task{do: r.step}
	}
	return &Task{at: time.Now().Add(firstReap()), do: r.step}
}

// firstReap returns a random wait, so that processes that start together do not reap together.
func firstReap() time.Duration { return reapEvery/2 + rand.N(reapEvery) }

// step does the next part of the work and returns how long to wait after it.
func (r *Reaper) step(base context.Context) time.Duration {
	switch {
	case r.keeps > 0:
		return r.keepAll(base)
	case r.walk != nil:
		return r.reapSome(base)
	}
	r.lookAgain(base)
	r.askHorizon(base)
	if r.record(base, false) && r.Keep+r.Bodies > 0 {
		return r.reapFirst(base)
	}
	return reapEvery
}

// keepAll tells the store that everything is kept for ever, so that no process applies an older
// policy. If the store is down, a later step calls keepAll again.
func (r *Reaper) keepAll(base context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	err := r.Turns.Do(ctx, func() error { return r.Store.Retain(ctx, r.kept()) })
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

// lookAgain checks, if this process keeps everything, whether another process with another policy has
// removed markers.
func (r *Reaper) lookAgain(base context.Context) {
	if r.judgesAge() {
		return
	}
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	_ = r.Turns.Do(ctx, func() error {
		removed, err := r.Store.Removed(ctx, r.Consumer)
		r.noteRemoved(removed)
		return err // the next step asks again
	})
}

// Ended records the progress of a run that has come to its end because nothing was left.
func (r *Reaper) Ended(idle bool) {
	if r == nil || !idle || r.Keep == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lastWithin)
	defer cancel()
	r.record(ctx, true)
}

// record stores the progress of the run, if it is known; false if the store returned an error. over: the
// run has ended and nothing is left.
func (r *Reaper) record(base context.Context, over bool) bool {
	if r.Keep == 0 {
		return true
	}
	lanes, known := r.ages(over)
	if ready, _ := r.Ready(); !ready || !known {
		return true // no progress: the retention's clock stands still
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

// ages returns the progress of the lanes; false if it is not known. over: nothing is left.
func (r *Reaper) ages(over bool) (lanes []source.LaneAge, known bool) {
	if dated := r.Info.Ages; dated != nil {
		err := r.Source("Ages", func() error { lanes, known = dated(); return nil })
		return lanes, known && err == nil
	}
	return r.Lanes.take(r.ByCalls || r.InFlight() > 0, over)
}

// askHorizon asks once an hour how late a copy can come, and stores that. If it is longer than the
// retention, the store removes nothing any more.
func (r *Reaper) askHorizon(base context.Context) {
	if r.Keep == 0 || time.Since(r.asked) < horizonEvery {
		return
	}
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	h, err := r.Horizon(ctx, r.Info)
	if err == nil {
		kept := r.kept()
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

// forEver is the horizon of a broker that drops nothing.
const forEver = 290 * 365 * 24 * time.Hour

// reapFirst begins a pass, which removes what is past its retention.
func (r *Reaper) reapFirst(base context.Context) time.Duration {
	if err := r.advance(base); err != nil {
		r.tell(base, err)
		return reapEvery
	}
	r.behind, r.walk = nil, &walk{began: time.Now()}
	return r.reapSome(base)
}

// reapSome removes one slice, and ends the pass if nothing is left or its time is over.
func (r *Reaper) reapSome(base context.Context) time.Duration {
	pass, began := r.walk, time.Now()
	r.At(faults.BeforeReap, r.slice)
	o := store.Reaping{Consumer: r.Consumer, Most: r.slice, After: pass.sum.Next, Rest: min(r.Keep/restShare, longestRest)}
	done, err := r.reap(base, o)
	if err != nil || done.Elsewhere {
		if r.walk = nil; err != nil {
			r.tell(base, err)
		}
		return reapEvery
	}
	r.At(faults.AfterReap, int(done.Markers))
	over := pass.sum.Add(o, done)
	took := time.Since(began)
	r.fit(took)
	if rest := restFor * took; !over && time.Since(pass.began)+rest < reapEvery {
		return rest
	}
	r.walk = nil
	if sum := pass.sum; sum.Markers+sum.Bodies+sum.Days > 0 {
		r.Logger.Debug("retention run", "consumer", r.Consumer, "days", sum.Days, "markers", sum.Markers, "rows", sum.Rows, "bodies", sum.Bodies)
	}
	return reapEvery
}

// advance raises the low-water marks; without Keep only bodies are removed.
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

// fit sets the size of the next slice, by how long the last one took.
func (r *Reaper) fit(took time.Duration) {
	switch {
	case took > sliceTime:
		r.slice = max(r.slice/2, leastSlice)
	case took < sliceTime/2:
		r.slice = min(r.slice*2, mostSlice)
	}
}

// tell logs why the reaper removes nothing, once for each cause.
func (r *Reaper) tell(base context.Context, err error) {
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
