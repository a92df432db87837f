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

// LaneAges records the progress of the lanes of a run if the source does not report it
// (source.Info.Ages). A lane is as far as the oldest message that was delivered since the last record.
// A lane has no open messages if nothing was delivered since, nothing is in flight, and the source is
// being asked and has nothing more.
type LaneAges struct {
	mutex  sync.Mutex
	oldest map[string]time.Time // by lane of this run; zero: nothing was delivered. Guarded by mutex
	asking bool                 // the source is being asked for more. Guarded by mutex
}

// Given adds a lane that was assigned to this run.
func (a *LaneAges) Given(lane string) {
	a.note(func(yield func(string, time.Time) bool) { yield(lane, time.Time{}) })
}

// Lost removes a lane. The process that has it now records its progress.
func (a *LaneAges) Lost(lane string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.oldest, lane)
}

// note records, by lane, the time of a delivered message; a zero time only adds the lane.
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

// Asks records whether the source is being asked for more.
func (a *LaneAges) Asks(asking bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.asking = asking
}

// take returns the progress of the lanes and resets it; false if it is not known. While nothing is in
// flight, a source that is being asked has nothing more. A source that is not being asked, for example
// because the consumer is paused, may have more. over: the run has ended and nothing is left.
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

// Delivered records the ages of delivered messages, if the source does not report the progress of its
// lanes. A message without a time is set aside, so its age does not count.
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
