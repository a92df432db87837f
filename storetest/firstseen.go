package storetest

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// first is a mark of a version of a stream that begins with what is met first. One that
// does not run is not judged.
func (h *fixture[Tx]) first(stream string, n int64, as store.Outcome) store.Mark {
	m := h.version(stream, n, as)
	m.Version.Start, m.Version.Asks = 0, as == store.Applied
	return m
}

// firstSeen is where streams begin whose first versions have not taken effect.
func (h *fixture[Tx]) firstSeen() {
	row := func(i int, state store.RowState) store.Row {
		return store.Row{Mark: i, State: state, Reason: semel.ReasonPermanent, Message: &semel.Message{}}
	}
	b, v := h.begin(h.first("parked", 6, store.Parked), h.first("waits", 5, store.Waiting), h.first("parked", 5, store.Parked), h.first("trimmed", 5, store.Waiting))
	h.wantKinds(v, fresh, fresh, fresh, fresh)
	h.commit(b, store.Ending{Trim: []int{3}, Rows: []store.Row{row(0, store.StateParked), row(1, store.StateReceived), row(2, store.StateParked)}})
	b, v = h.begin(h.first("beside", 5, store.Parked), h.first("beside", 6, store.Applied))
	h.wantKinds(v, fresh, gap)
	h.commit(b, store.Ending{Trim: []int{1}, Rows: []store.Row{row(0, store.StateParked)}})
	if receiver, ok := h.Store.(store.CallerTx[Tx]); ok {
		b, _ = h.begin()
		_, err := receiver.ReceiveIn(h.t.context(), b.Tx(store.All), []store.Mark{h.first("received", 5, store.Waiting)}, []*semel.Message{{}}, semel.ReasonNone)
		h.t.must(err)
		h.commit(b, store.Ending{})
		h.wantAt("received", 4)
	}
	for _, stream := range []string{"parked", "waits", "beside"} {
		h.wantAt(stream, 4)
		h.wantKinds(h.asks(h.first(stream, 7, store.Applied)), gap)
	}
	h.wantAt("trimmed", 0)
	// One that has begun is not begun again, and one of which a copy was met is.
	b, _ = h.begin(h.first("parked", 3, store.Parked))
	h.commit(b, store.Ending{Rows: []store.Row{row(0, store.StateParked)}})
	h.wantAt("parked", 4)
	old := h.first("copied", 3, store.Applied)
	old.Version = store.Version{}
	h.deliver(old)
	b, _ = h.begin(h.first("copied", 3, store.Applied))
	h.commit(b, store.Ending{})
	h.wantAt("copied", -1)
	b, _ = h.begin(h.first("copied", 8, store.Parked))
	h.commit(b, store.Ending{Rows: []store.Row{row(0, store.StateParked)}})
	h.wantAt("copied", 7)
}

// passesParked skips a version that was parked for a reason of its own: it stays parked,
// and so does its marker.
func (h *fixture[Tx]) passesParked() {
	m := h.version("passed", 1, store.Parked)
	m.Version.Asks = false
	b, _ := h.begin(m)
	h.commit(b, store.Ending{Rows: []store.Row{{State: store.StateParked, Reason: semel.ReasonPrecondition, Message: &semel.Message{}}}})
	h.blocks("passed", 2, long)
	h.t.must(h.streams().SkipTo(h.t.context(), h.at("passed"), 1, act("skip")))
	if got := h.row(string(m.ID), false); got.State != store.StateParked || got.Reason != semel.ReasonPrecondition {
		h.t.Errorf("what was parked is %s, %s", got.State, got.Reason)
	}
	h.wantOutcome(string(m.ID), store.Parked)
	h.wantAt("passed", 1)
	h.t.must(h.streams().SkipTo(h.t.context(), h.at("passed"), 2, act("skip")))
}
