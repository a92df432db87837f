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

// intake calls Fetch, one call at a time, and computes identities and fingerprints, so that the loop only
// makes decisions.
type intake struct {
	config   *Config
	source   source.Source
	info     source.Info // information about source
	orders   chan machine.Fetch
	reporter *Reporter
	reaper   *upkeep.Reaper
	ages     *upkeep.LaneAges
	readers  delivery.Readers
	control  *control.Control // nil for Process
	known    bool             // the source has answered; used by the goroutine that fetches
	may      bool             // the last answer of Config.MayEnd; used by the goroutine that fetches

	mutex    sync.Mutex
	cancel   context.CancelFunc // cancels the current Fetch; guarded by mutex
	asking   context.CancelFunc // cancels the current call of Info.Idle; guarded by mutex
	canceled bool               // the last requested Fetch was cancelled, before or after it began; guarded by mutex
	idle     bool               // the last requested Fetch was cancelled to end an idle run; guarded by mutex
	left     []semel.Unfinished // the last answer of Info.Idle; guarded by mutex
}

// order requests one Fetch. The caller calls order only after the event for the previous Fetch was sent.
func (t *intake) order(a machine.Fetch) {
	t.mutex.Lock()
	t.cancel, t.asking, t.canceled, t.idle = nil, nil, false, false
	t.mutex.Unlock()
	t.orders <- a
}

// cancelFetch cancels the Fetch that was requested last. If the parameter idle is true, the run may end afterwards, so
// the source is asked whether it has more messages. If the parameter idle is false, a running call of Info.Idle is
// cancelled too.
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

// answer makes the Fetch that the parameter order requests, and always sends an event. If the source or a function of
// the user ends the goroutine, the deferred functions send the event, and a new goroutine makes the next Fetch.
// Deliveries that the source has returned are read in any case.
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

// read returns the event for the result of a Fetch. ctx is the context of that Fetch.
func (t *intake) read(ctx, base context.Context, deliveries []source.Delivery, err error) machine.Fetched {
	if !t.known && (err == nil || errors.Is(err, source.ErrEnd)) {
		t.known = true
		t.reporter.SourceAnswered()
	}
	e := machine.Fetched{Items: t.readers.Items(t.config.Rules, deliveries), End: errors.Is(err, source.ErrEnd)}
	t.reaper.Delivered(e.Items)
	switch {
	case err == nil && len(deliveries) == 0 && t.control.Paused():
		e.Unanswered = true // the pause ended the Fetch
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
