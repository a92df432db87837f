package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/control"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/consumer/internal/upkeep"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/source"
)

// intake fetches, one call at a time, and finds identities and fingerprints,
// so that the loop has only decisions to make.
type intake struct {
	config   *Config
	source   source.Source
	info     source.Info // of source
	orders   chan machine.Fetch
	reporter *Reporter
	reaper   *upkeep.Reaper
	ages     *upkeep.LaneAges
	readers  delivery.Readers
	control  *control.Control // nil for Process
	known    bool             // the source has answered; of the goroutine that fetches
	may      bool             // Config.MayEnd said so when it was asked last; of that goroutine, too

	mutex    sync.Mutex
	cancel   context.CancelFunc // of the Fetch under way; guarded by mutex
	asking   context.CancelFunc // of the question whether there is more; guarded by mutex
	canceled bool               // the last order, begun or not; guarded by mutex
	idle     bool               // it was canceled to end the run; guarded by mutex
	left     []semel.Unfinished // as the source said last; guarded by mutex
}

// order asks for one Fetch; the one before it has been answered.
func (t *intake) order(a machine.Fetch) {
	t.mutex.Lock()
	t.cancel, t.asking, t.canceled, t.idle = nil, nil, false, false
	t.mutex.Unlock()
	t.orders <- a
}

// cancelFetch ends the Fetch that was ordered last; idle says that the run would
// end for it, so that the source is asked whether it has more. Otherwise nobody
// waits for that, and a question under way ends, too.
func (t *intake) cancelFetch(idle bool) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.canceled, t.idle = true, idle
	if t.cancel != nil {
		t.cancel()
	}
	if t.asking != nil && !idle {
		t.asking()
	}
}

func (t *intake) begin(base context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(base)
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.cancel = cancel
	if t.canceled {
		cancel()
	}
	return ctx, cancel
}

func (t *intake) work(base context.Context, events chan<- machine.Event) {
	for {
		var order machine.Fetch
		select {
		case order = <-t.orders:
		case <-base.Done():
			return
		}
		t.answer(base, order, events)
	}
}

var errFetchGoexit = errors.New("the source ended its goroutine while it was asked for messages (runtime.Goexit)")

// answer answers an order, also if the goroutine is ended in it: then what is
// deferred here still runs, and a new goroutine takes the next order. Once the
// source has returned, what it gave is read and handed on, whoever ends it.
func (t *intake) answer(base context.Context, order machine.Fetch, events chan<- machine.Event) {
	e := machine.Fetched{Failed: true, Err: errFetchGoexit}
	defer func() {
		select {
		case events <- e:
		case <-base.Done():
		}
	}()
	ctx, cancel := t.begin(base)
	defer cancel()
	if order.Messages = t.control.AdmitFetch(ctx, order.Messages, cancel); order.Messages == 0 {
		e = machine.Fetched{Unanswered: true}
		return
	}
	var deliveries []source.Delivery
	var err error
	returned := false
	defer func() {
		if returned {
			e = t.read(ctx, base, deliveries, err)
		}
	}()
	t.ages.Asks(true)
	defer t.ages.Asks(false)
	err = t.config.Source("Fetch", func() (err error) {
		deliveries, err = t.source.Fetch(ctx, source.Bound{Messages: order.Messages, Bytes: order.Bytes})
		return err
	})
	returned = true
	t.control.Fetched(len(deliveries))
	t.config.At(faults.AfterFetch, len(deliveries))
}

// read makes the event of what the source returned; ctx is that of the Fetch.
func (t *intake) read(ctx, base context.Context, deliveries []source.Delivery, err error) machine.Fetched {
	if !t.known && (err == nil || errors.Is(err, source.ErrEnd)) {
		t.known = true
		t.reporter.SourceAnswered()
	}
	e := machine.Fetched{Items: t.readers.Items(t.config.Rules, deliveries), End: errors.Is(err, source.ErrEnd)}
	t.reaper.Delivered(e.Items)
	switch {
	case err == nil && len(deliveries) == 0 && t.control.Paused():
		e.Unanswered = true // it was ended for that
	case err == nil && len(deliveries) == 0:
		t.askIdle(base, &e)
	case err == nil || e.End:
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		e.Unanswered = len(deliveries) == 0
	case base.Err() == nil:
		e.Failed, e.Err = true, err
	}
	return e
}
