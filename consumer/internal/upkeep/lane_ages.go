package upkeep

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
)

// LaneAges are how far the lanes of a run are whose source does not tell (source.Info.Ages):
// as far as the oldest of what was delivered since the last record, and done when nothing
// was, nothing is under way and the source has nothing more.
type LaneAges struct {
	mutex  sync.Mutex
	oldest map[string]time.Time // by lane that this run has; zero: nothing was delivered. guarded by mutex
	asking bool                 // the source is being asked for more. guarded by mutex
}

// Given takes note of a lane that this run has from now on.
func (a *LaneAges) Given(lane string) {
	a.note(func(yield func(string, time.Time) bool) { yield(lane, time.Time{}) })
}

// Lost forgets a lane: how far it is another process tells.
func (a *LaneAges) Lost(lane string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.oldest, lane)
}

// note takes note of lanes, and of when something was written that was delivered there; zero:
// nothing was.
func (a *LaneAges) note(delivered iter.Seq2[string, time.Time]) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.oldest == nil {
		a.oldest = map[string]time.Time{}
	}
	for lane, at := range delivered {
		if was, there := a.oldest[lane]; !there || was.IsZero() || !at.IsZero() && at.Before(was) {
			a.oldest[lane] = at
		}
	}
}

// Asks takes note of whether the source is being asked for more.
func (a *LaneAges) Asks(asking bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.asking = asking
}

// take returns how far the lanes are, and begins anew; false: that is not known. A source
// that waits with nothing under way has nothing more; one that nobody asks, such as that of
// a consumer that is paused, may have.
func (a *LaneAges) take(underWay, over bool) (lanes []source.LaneAge, known bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	for _, lane := range slices.Sorted(maps.Keys(a.oldest)) {
		if at := a.oldest[lane]; !at.IsZero() && !over {
			lanes = append(lanes, source.LaneAge{Lane: lane, Oldest: at})
			a.oldest[lane] = time.Time{}
		}
	}
	switch {
	case len(lanes) > 0:
		return lanes, true
	case !over && (underWay || !a.asking):
		return nil, false
	}
	for _, lane := range slices.Sorted(maps.Keys(a.oldest)) {
		a.oldest[lane] = time.Time{}
		lanes = append(lanes, source.LaneAge{Lane: lane})
	}
	return lanes, true
}

// Delivered takes note of how old what was delivered is, where the source does not tell.
// What has no time, and so is set aside, holds nobody back.
func (r *Reaper) Delivered(items []*machine.Item) {
	if r == nil || r.Keep == 0 {
		return
	}
	if r.Info.Ages != nil {
		return
	}
	r.Lanes.note(func(yield func(string, time.Time) bool) {
		for _, it := range items {
			p := it.Handle.(*delivery.Delivery)
			at := r.AgeOf(p)
			if at.IsZero() {
				at = sentAt(&p.Message)
			}
			if !at.Equal(noTime) && !yield(it.Lane.ID, at) {
				return
			}
		}
	})
}
