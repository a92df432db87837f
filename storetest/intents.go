package storetest

import (
	"errors"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// hasIntents reports whether messages can be written into the inbox in a handler's
// transaction, waiting or parked, and be suppressed.
func hasIntents[Tx any](st store.TxStore[Tx]) bool {
	_, caller := st.(store.CallerTx[Tx])
	_, queue := st.(store.QueueStore[Tx])
	return has[admin.Requeuer](st) && (queue || caller)
}

// writes writes messages in the transaction of a batch, waiting, or parked for a reason. The
// verdicts are there when the batch has committed.
func (h *fixture[Tx]) writes(b store.Batch[Tx], reason semel.Reason, marks ...store.Mark) *[]store.Verdict {
	h.t.Helper()
	messages := make([]*semel.Message, len(marks))
	for i := range marks {
		marks[i].As, messages[i] = store.Waiting, &semel.Message{Body: marks[i].ID}
		if reason != semel.ReasonNone {
			marks[i].As = store.Parked
		}
	}
	told := new([]store.Verdict)
	var err error
	tx := b.Tx(store.All)
	if caller, able := h.Store.(store.CallerTx[Tx]); able {
		*told, err = caller.ReceiveIn(h.t.context(), tx, marks, messages, reason)
	} else {
		err = h.Store.(store.QueueStore[Tx]).ReceiveQueued(tx, marks, messages, reason, func(v []store.Verdict) error { *told = v; return nil })
	}
	h.t.must(err)
	return told
}

// intents are the laws of messages that a handler writes for another consumer.
func (s suite[Tx]) intents(t *T) {
	t.Run("law_1_what_a_handler_writes_down_shares_the_fate_of_its_transaction", "Its rows are there when it has committed, and none when it has rolled back.", func(t *T) {
		h := s.opened(t)
		for _, reason := range []semel.Reason{semel.ReasonNone, semel.ReasonSuppressed} {
			b, _ := h.begin(h.mark("cause"))
			h.writes(b, reason, h.print("a", 1), h.print("b", 1))
			b.Rollback(t.context())
		}
		if rows := h.list(store.RowFilter{}); len(rows) != 0 {
			t.Fatalf("a rollback leaves %+v", rows)
		}
		b, _ := h.begin(h.mark("cause"))
		v := h.writes(b, semel.ReasonNone, h.print("a", 1))
		h.writes(b, semel.ReasonSuppressed, h.print("b", 1))
		h.commit(b, store.Ending{})
		h.wantKinds(*v, fresh)
		rows := h.list(store.RowFilter{Bodies: true})
		if len(rows) != 2 || rows[0].State != store.StateReceived || rows[1].State != store.StateParked || rows[1].Reason != semel.ReasonSuppressed || string(rows[1].Message.Body) != "b" {
			t.Errorf("%+v", rows)
		}
		h.wantOutcome("a", store.Waiting)
		h.wantOutcome("b", store.Parked)
		h.works(rows[0].Number)
	})
	t.Run("law_7_what_was_written_down_before_is_left_as_it_is", "A copy, or another content, is told what became of the first, and changes nothing.", func(t *T) {
		h := s.opened(t)
		for _, reason := range []semel.Reason{semel.ReasonNone, semel.ReasonSuppressed} {
			b, _ := h.begin()
			h.writes(b, reason, h.print(string(reason)+"a", 1))
			h.commit(b, store.Ending{})
			before := h.list(store.RowFilter{})
			b, _ = h.begin()
			v := h.writes(b, semel.ReasonNone, h.print(string(reason)+"a", 1), h.print(string(reason)+"new", 1))
			other := h.writes(b, semel.ReasonNone, h.print(string(reason)+"a", 2))
			h.commit(b, store.Ending{})
			was := store.Waiting
			if reason != semel.ReasonNone {
				was = store.Parked
			}
			h.wantKinds(*v, already(was), fresh)
			if (*other)[0].Kind != store.Conflict {
				t.Errorf("another content is %v", (*other)[0])
			}
			rows := h.list(store.RowFilter{})
			if len(rows) != len(before)+1 || rows[len(before)-1].Revision != before[len(before)-1].Revision || rows[len(before)-1].State != before[len(before)-1].State {
				t.Errorf("%+v, and before %+v", rows, before)
			}
		}
	})
	t.Run("E4_what_is_suppressed_waits_for_a_person", "It is claimed by nobody, and its act is recorded; made due again it is worked on once.", func(t *T) {
		h := s.opened(t)
		r := h.receive("a", 0, nil)
		suppressor := h.requeuer()
		act := store.Act{Verb: "suppress", Who: "me", Why: "a replay"}
		if err := errors.Join(suppressor.Suppress(t.context(), act, store.RowRevision{Number: r.Number, Revision: r.Revision + 1})...); !errors.Is(err, semel.ErrChanged) {
			t.Errorf("another revision: %v", err)
		}
		t.must(errors.Join(suppressor.Suppress(t.context(), act, r.Seen())...))
		if got, err := h.leases().Claim(t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 10, Lease: long}); err != nil || len(got) != 0 {
			t.Errorf("claimed %+v, %v", got, err)
		}
		now := h.number(r.Number)
		if now.State != store.StateParked || now.Reason != semel.ReasonSuppressed {
			t.Errorf("%+v", now)
		}
		h.wantOutcome("a", store.Parked)
		if acts, err := h.Store.(store.Inbox).Acts(t.context(), r.Number, 0); err != nil || len(acts) != 1 || acts[0].Verb != "suppress" || acts[0].Why != "a replay" || acts[0].Result != "done" {
			t.Errorf("%+v, %v", acts, err)
		}
		if err := errors.Join(suppressor.Suppress(t.context(), act, now.Seen())...); !errors.Is(err, semel.ErrState) {
			t.Errorf("suppressed twice: %v", err)
		}
		t.must(errors.Join(h.requeuer().Requeue(t.context(), store.Act{Verb: "send", Who: "me", Why: "it is needed"}, now.Seen())...))
		h.works(r.Number)
		if err := errors.Join(suppressor.Suppress(t.context(), act, h.number(r.Number).Seen())...); !errors.Is(err, semel.ErrState) {
			t.Errorf("suppressed when it is done: %v", err)
		}
	})
}
