package storetest

import (
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// first is a mark of a version of a stream that begins with what is met first. One that
// does not run is not judged.
func (h *fixture[Tx]) first(stream string, n int64, as contract.Outcome) contract.Mark {
	m := h.version(stream, n, as)
	m.Version.Start, m.Version.Asks = 0, as == contract.Applied
	return m
}

// firstSeen is where streams begin whose first versions have not taken effect.
func (h *fixture[Tx]) firstSeen() {
	row := func(i int, state contract.RowState) contract.Row {
		return contract.Row{Mark: i, State: state, Reason: semel.ReasonPermanent, Message: &semel.Message{}}
	}
	b, v := h.begin(h.first("parked", 6, contract.Parked), h.first("waits", 5, contract.Waiting), h.first("parked", 5, contract.Parked), h.first("trimmed", 5, contract.Waiting))
	h.wantKinds(v, fresh, fresh, fresh, fresh)
	h.commit(b, contract.Ending{Trim: []int{3}, Rows: []contract.Row{row(0, contract.StateParked), row(1, contract.StateReceived), row(2, contract.StateParked)}})
	b, v = h.begin(h.first("beside", 5, contract.Parked), h.first("beside", 6, contract.Applied))
	h.wantKinds(v, fresh, gap)
	h.commit(b, contract.Ending{Trim: []int{1}, Rows: []contract.Row{row(0, contract.StateParked)}})
	if receiver, ok := h.Store.(contract.TxReceiver[Tx]); ok {
		b, _ = h.begin()
		_, err := receiver.ReceiveIn(h.t.context(), b.Tx(contract.All), []contract.Mark{h.first("received", 5, contract.Waiting)}, []*semel.Message{{}})
		h.t.must(err)
		h.commit(b, contract.Ending{})
		h.wantAt("received", 4)
	}
	for _, stream := range []string{"parked", "waits", "beside"} {
		h.wantAt(stream, 4)
		h.wantKinds(h.asks(h.first(stream, 7, contract.Applied)), gap)
	}
	h.wantAt("trimmed", 0)
	// One that has begun is not begun again, and one of which a copy was met is.
	b, _ = h.begin(h.first("parked", 3, contract.Parked))
	h.commit(b, contract.Ending{Rows: []contract.Row{row(0, contract.StateParked)}})
	h.wantAt("parked", 4)
	old := h.first("copied", 3, contract.Applied)
	old.Version = contract.Version{}
	h.deliver(old)
	b, _ = h.begin(h.first("copied", 3, contract.Applied))
	h.commit(b, contract.Ending{})
	h.wantAt("copied", -1)
	b, _ = h.begin(h.first("copied", 8, contract.Parked))
	h.commit(b, contract.Ending{Rows: []contract.Row{row(0, contract.StateParked)}})
	h.wantAt("copied", 7)
}

// passesParked skips a version that was parked for a reason of its own: it stays parked,
// and so does its marker.
func (h *fixture[Tx]) passesParked() {
	m := h.version("passed", 1, contract.Parked)
	m.Version.Asks = false
	b, _ := h.begin(m)
	h.commit(b, contract.Ending{Rows: []contract.Row{{State: contract.StateParked, Reason: semel.ReasonUnmet, Message: &semel.Message{}}}})
	h.blocks("passed", 2, long)
	h.t.must(h.streams().SkipTo(h.t.context(), h.at("passed"), 1, act("skip")))
	if got := h.row(string(m.ID), false); got.State != contract.StateParked || got.Reason != semel.ReasonUnmet {
		h.t.Errorf("what was parked is %s, %s", got.State, got.Reason)
	}
	h.wantOutcome(string(m.ID), contract.Parked)
	h.wantAt("passed", 1)
	h.t.must(h.streams().SkipTo(h.t.context(), h.at("passed"), 2, act("skip")))
}
