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

// LaneAges records the progress of the lanes of a run, for a source that does not report the progress itself
// (source.Info.Ages). The progress of a lane is the time of the oldest message that was delivered since the last
// record. A lane has no open messages if three conditions hold: no message was delivered since the last record, no
// message is in flight, and the source is waiting for new messages.
type LaneAges struct {
	mutex  sync.Mutex
	oldest map[string]time.Time // by lane of this run; zero if nothing was delivered; guarded by mutex
	asking bool                 // a Fetch of the source is running; guarded by mutex
}

func (a *LaneAges) Given(lane string) {
	a.recordTimes(func(yield func(string, time.Time) bool) { yield(lane, time.Time{}) })
}

// Lost removes a lane. From then on, the process that gets the lane records the progress of the lane.
func (a *LaneAges) Lost(lane string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.oldest, lane)
}

// recordTimes records, by lane, the times of delivered messages. A zero time only adds the lane.
func (a *LaneAges) recordTimes(delivered iter.Seq2[string, time.Time]) {
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

// Asks records whether a Fetch of the source is running.
func (a *LaneAges) Asks(asking bool) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.asking = asking
}

// take returns the progress of the lanes and resets it. The result known is false if the progress is not known. If no
// message is in flight and a Fetch is running, the source has no more messages. If no Fetch is running, for example
// because the consumer is paused, the source may have more messages. The parameter over means that the run has ended
// and no message is left.
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

// Delivered records the ages of delivered messages if the source does not report the progress of its lanes. A
// message without a time is parked, so its age does not count.
func (r *Reaper) Delivered(items []*machine.Item) {
	if r == nil || r.Keep == 0 {
		return
	}
	if r.Info.Ages != nil {
		return
	}
	r.Lanes.recordTimes(func(yield func(string, time.Time) bool) {
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
