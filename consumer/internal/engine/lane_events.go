package engine

import (
	"context"
	"sync"

	"github.com/semel-go/semel/consumer/internal/upkeep"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
)

// laneEvents passes a source's reports about its lanes to the machine.
type laneEvents struct {
	reporter *Reporter
	ages     *upkeep.LaneAges
	first    sync.Once // reports the first lane once
	events   chan<- machine.Event
	over     <-chan struct{}

	mutex   sync.Mutex
	waiting map[source.Lane]chan struct{} // guarded by mutex
}

func (d *laneEvents) send(e machine.Event) {
	select {
	case d.events <- e:
	case <-d.over:
	}
}

func (d *laneEvents) Given(l source.Lane) {
	d.first.Do(d.reporter.SourceAnswered)
	d.ages.Given(l.ID)
	d.send(machine.Given{Lane: l})
}

func (d *laneEvents) Lost(l source.Lane) {
	d.ages.Lost(l.ID)
	d.send(machine.Lost{Lane: l})
	d.release(l)
}

func (d *laneEvents) Revoking(ctx context.Context, l source.Lane) {
	released := make(chan struct{})
	d.mutex.Lock()
	d.waiting[l] = released
	d.mutex.Unlock()
	d.send(machine.Revoking{Lane: l})
	select {
	case <-released:
	case <-ctx.Done():
	case <-d.over:
	}
}

func (d *laneEvents) release(l source.Lane) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if released := d.waiting[l]; released != nil {
		close(released)
		delete(d.waiting, l)
	}
}
