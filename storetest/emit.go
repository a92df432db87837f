package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// emits makes the intents of the given causes due again.
func (h *fixture[Tx]) emits(o admin.EmitOptions, causes ...string) admin.Emitted {
	h.t.Helper()
	for _, c := range causes {
		o.Causes = append(o.Causes, []byte(c))
	}
	did, err := h.Store.(admin.Emitter).Emit(h.t.context(), o)
	h.t.must(err)
	return did
}

func (h *fixture[Tx]) wantEmitted(got, want admin.Emitted) {
	h.t.Helper()
	if got != want {
		h.t.Errorf("%+v, want %+v", got, want)
	}
}

// writeIntents writes intents that wait to be sent, one for each id, all with the same cause.
func (h *fixture[Tx]) writeIntents(cause string, ids ...string) (numbers []int64) {
	h.t.Helper()
	b, _ := h.begin()
	var marks []store.Mark
	for _, id := range ids {
		m := h.contentMark(id, 1)
		m.Cause = []byte(cause)
		marks = append(marks, m)
	}
	h.writes(b, reasonname.None, marks...)
	h.commit(b, store.Ending{})
	for _, id := range ids {
		rows := h.list(store.RowFilter{IDs: []string{id}})
		if len(rows) != 1 {
			h.t.Fatalf("there are %d rows of %s", len(rows), id)
		}
		numbers = append(numbers, rows[0].Number)
	}
	return numbers
}

// callsFor claims a row, makes its call, and ends the claim with this state of the row.
func (h *fixture[Tx]) callsFor(number int64, state store.RowState, o store.CallOutcome) store.CallStarted {
	h.t.Helper()
	c := h.takes(number, long)
	if len(c) != 1 {
		h.t.Fatalf("row %d cannot be claimed", number)
	}
	started := h.starts(c[0].Claim, long)
	h.endsClaim(store.ClaimEnding{Claim: c[0].Claim, State: state, Ran: true, Call: o})
	return started
}

// sendIntents writes intents of a cause and sends them.
func (h *fixture[Tx]) sendIntents(cause string, ids ...string) []int64 {
	h.t.Helper()
	numbers := h.writeIntents(cause, ids...)
	for _, n := range numbers {
		if s := h.callsFor(n, store.StateCompleted, store.CallDecided); s.Again {
			h.t.Errorf("the first start of row %d is reported as a repeated one", n)
		}
	}
	return numbers
}

// testEmission tests that intents can be sent again.
func (s suite[Tx]) testEmission(t *T) {
	s.run(t, "C12_a_sent_intent_is_due_again_under_its_identity",
		"An intent that is sent again waits like a new one; its sender learns that it is a repetition; it is sent once, unchanged.", func(t *T, h *fixture[Tx]) {
			n := h.sendIntents("cause", "a", "b")
			other := h.sendIntents("another", "c")[0]
			before := h.number(n[0])
			h.wantEmitted(h.emits(admin.EmitOptions{}, "cause", "unknown"), admin.Emitted{Again: 2})
			h.wantEmitted(h.emits(admin.EmitOptions{}), admin.Emitted{})
			r := h.wantCalls(n[0], 1, 0)
			if r.State != store.StateReceived || r.Attempts != 0 || r.Started != 0 || r.Key != before.Key || r.ReceivedAt.Before(before.ReceivedAt) || string(r.Message.Body) != string(before.Message.Body) || r.Revision == before.Revision {
				t.Errorf("the row is %+v, and before %+v", r, before)
			}
			h.wantOutcome("a", store.Waiting)
			h.wantState("the intent of another message", h.number(other), store.StateCompleted)
			h.wantEmitted(h.emits(admin.EmitOptions{}, "cause"), admin.Emitted{Left: 2})
			if got := h.callsFor(n[0], store.StateCompleted, store.CallDecided); !got.Stands || !got.Again || !got.Unknown() || got.Started != 2 {
				t.Errorf("the start answers %+v", got)
			}
			h.wantOutcome("a", store.Applied)
			if again := h.takes(n[0], long); len(again) != 0 {
				t.Error("the intent is to be sent a third time")
			}
			h.wantEmitted(h.emits(admin.EmitOptions{}, "cause"), admin.Emitted{Again: 1, Left: 1})
		})
	s.run(t, "C12_an_intent_is_not_sent_again_too_early_or_after_its_window", "An intent that ended too recently, or whose first call is too long ago, is counted and not changed.", func(t *T, h *fixture[Tx]) {
		n := h.sendIntents("cause", "a")[0]
		before := h.number(n)
		windows := map[string]time.Duration{"others": 1, "billing": 365 * 24 * time.Hour}
		h.wantEmitted(h.emits(admin.EmitOptions{Every: long, Windows: windows}, "cause"), admin.Emitted{Recent: 1})
		h.until(func() bool {
			return h.emits(admin.EmitOptions{Windows: map[string]time.Duration{"billing": time.Millisecond}, Every: long}, "cause") == admin.Emitted{Forgotten: 1}
		})
		if r := h.number(n); r.Revision != before.Revision {
			t.Errorf("the row is %+v, and before %+v", r, before)
		}
		h.wantEmitted(h.emits(admin.EmitOptions{Windows: windows}, "cause"), admin.Emitted{Again: 1})
	})
	s.run(t, "C12_one_of_many_copies_sends_an_intent_again",
		"Of many copies at once, exactly one makes each intent due.", func(t *T, h *fixture[Tx]) {
			h.sendIntents("cause", "a", "b")
			did := make([]admin.Emitted, 4)
			runConcurrently(len(did), func(i int) { did[i] = h.emits(admin.EmitOptions{}, "cause") })
			var all admin.Emitted
			for _, d := range did {
				all = all.Plus(d)
			}
			h.wantEmitted(all, admin.Emitted{Again: 2, Left: 6})
		})
	s.run(t, "C12_law_1_an_intent_that_was_not_sent_is_unchanged", "An intent that waits, is parked or was completed in a transaction is left unchanged.", func(t *T, h *fixture[Tx]) {
		n := h.writeIntents("cause", "waits", "claimed", "parked", "discarded", "inside", "nowhere")
		h.takes(n[1], long)
		h.callsFor(n[2], store.StateParked, store.CallDecided)
		h.callsFor(n[3], store.StateDiscarded, store.CallUnknown)
		inside := h.takes(n[4], long)[0]
		h.starts(inside.Claim, long)
		m := h.asking(inside)
		b, v := h.begin(m)
		h.wantKinds(v, fresh)
		h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: inside.Claim, State: store.StateCompleted, Ran: true, Call: store.CallDecided}}})
		nowhere := h.takes(n[5], long)[0]
		h.endsClaim(store.ClaimEnding{Claim: nowhere.Claim, State: store.StateCompleted})
		before := h.revisions(n)
		h.wantEmitted(h.emits(admin.EmitOptions{}, "cause"), admin.Emitted{Left: 6})
		if now := h.revisions(n); !slices.Equal(before, now) {
			t.Errorf("rows had the revisions %v, and have %v", before, now)
		}
	})
	s.run(t, "C12_E3_an_intent_resolved_as_not_done_is_sent_for_the_first_time",
		"Its calls and the operator's resolution are forgotten.", func(t *T, h *fixture[Tx]) {
			n := h.sendIntents("cause", "a")[0]
			h.wantEmitted(h.emits(admin.EmitOptions{}, "cause"), admin.Emitted{Again: 1})
			h.callsFor(n, store.StateFailedRetryable, store.CallUnknown)
			t.must(h.resolve(h.number(n), admin.ResolvedNotDone))
			if got := h.callsFor(n, store.StateCompleted, store.CallDecided); got.Again || got.Started != 1 {
				t.Errorf("the start answers %+v", got)
			}
		})
	if !s.h.Can.Retention {
		return
	}
	s.run(t, "C12_an_intent_without_body_is_not_sent_again", "An intent whose body was removed is never sent with an empty body.", func(t *T, h *fixture[Tx]) {
		n := h.sendIntents("cause", "a")[0]
		h.retain(store.Retention{Keep: time.Hour, Bodies: shortRetention})
		h.until(func() bool {
			h.pass(10)
			return h.number(n).BodyRemoved
		})
		h.wantEmitted(h.emits(admin.EmitOptions{}, "cause"), admin.Emitted{Left: 1})
	})
}

func (h *fixture[Tx]) revisions(numbers []int64) (all []int64) {
	for _, n := range numbers {
		all = append(all, h.number(n).Revision)
	}
	return all
}

// until calls the function reached until it returns true. The result of reached depends on the store's clock.
func (h *fixture[Tx]) until(reached func() bool) {
	h.t.Helper()
	for ctx := h.t.context(); !reached(); moment(ctx) {
		if ctx.Err() != nil {
			h.t.Fatal("the condition does not become true")
		}
	}
}

// hasIntents reports whether the store lets a handler write messages into the inbox in its transaction, as
// waiting or parked, and whether such messages can be suppressed.
func hasIntents[Tx any](st store.TxStore[Tx]) bool {
	_, caller := st.(store.CallerTx[Tx])
	_, queue := st.(admin.QueueStore[Tx])
	return has[admin.Requeuer](st) && (queue || caller)
}

// writes writes messages in the transaction of a batch. If the reason is "", the messages wait; with any other reason,
// the messages are parked. The returned answers are valid once the batch has committed.
func (h *fixture[Tx]) writes(b store.Batch[Tx], reason semel.Reason, marks ...store.Mark) *[]store.Verdict {
	h.t.Helper()
	messages := make([]*semel.Message, len(marks))
	for i := range marks {
		marks[i].As, messages[i] = store.Waiting, &semel.Message{Body: marks[i].ID}
		if reason != reasonname.None {
			marks[i].As = store.Parked
		}
	}
	told := new([]store.Verdict)
	var err error
	tx := b.Tx(store.All)
	if caller, able := h.Store.(store.CallerTx[Tx]); able {
		*told, err = caller.ReceiveIn(h.t.context(), tx, marks, messages, reason)
	} else {
		err = h.Store.(admin.QueueStore[Tx]).ReceiveQueued(tx, marks, messages, reason, func(v []store.Verdict) error { *told = v; return nil })
	}
	h.t.must(err)
	return told
}

// testIntents tests messages that a handler writes for another consumer.
func (s suite[Tx]) testIntents(t *T) {
	s.run(t, "law_1_an_intent_commits_with_its_handlers_transaction",
		"The intents of a handler are visible after its commit, and never after a rollback.", func(t *T, h *fixture[Tx]) {
			for _, reason := range []semel.Reason{reasonname.None, reasonname.Suppressed} {
				b, _ := h.begin(h.mark("cause"))
				h.writes(b, reason, h.contentMark("a", 1), h.contentMark("b", 1))
				b.Rollback(t.context())
			}
			if rows := h.list(store.RowFilter{}); len(rows) != 0 {
				t.Fatalf("a rollback leaves %+v", rows)
			}
			b, _ := h.begin(h.mark("cause"))
			v := h.writes(b, reasonname.None, h.contentMark("a", 1))
			h.writes(b, reasonname.Suppressed, h.contentMark("b", 1))
			h.commit(b, store.Ending{})
			h.wantKinds(*v, fresh)
			rows := h.list(store.RowFilter{Bodies: true})
			if len(rows) != 2 || rows[0].State != store.StateReceived || rows[1].State != store.StateParked || rows[1].Reason != reasonname.Suppressed || string(rows[1].Message.Body) != "b" {
				t.Errorf("%+v", rows)
			}
			h.wantOutcome("a", store.Waiting)
			h.wantOutcome("b", store.Parked)
			h.works(rows[0].Number)
		})
	s.run(t, "law_7_an_intent_that_exists_is_not_changed",
		"A copy of an intent, or other content, gets the outcome of the first one and changes nothing.", func(t *T, h *fixture[Tx]) {
			for _, reason := range []semel.Reason{reasonname.None, reasonname.Suppressed} {
				b, _ := h.begin()
				h.writes(b, reason, h.contentMark(string(reason)+"a", 1))
				h.commit(b, store.Ending{})
				before := h.list(store.RowFilter{})
				b, _ = h.begin()
				v := h.writes(b, reasonname.None, h.contentMark(string(reason)+"a", 1), h.contentMark(string(reason)+"new", 1))
				other := h.writes(b, reasonname.None, h.contentMark(string(reason)+"a", 2))
				h.commit(b, store.Ending{})
				was := store.Waiting
				if reason != reasonname.None {
					was = store.Parked
				}
				h.wantKinds(*v, already(was), fresh)
				if (*other)[0].Kind != store.Conflict {
					t.Errorf("another content is %v", (*other)[0])
				}
				rows := h.list(store.RowFilter{})
				if len(rows) != len(before)+1 || rows[len(before)-1].Revision != before[len(before)-1].Revision || rows[len(before)-1].State != before[len(before)-1].State {
					t.Errorf("the rows are %+v, and before %+v", rows, before)
				}
			}
		})
	s.run(t, "E4_a_suppressed_intent_waits_for_an_operator",
		"A suppressed intent is not claimed, and the suppression is recorded; after a retry the intent runs once.", func(t *T, h *fixture[Tx]) {
			r := h.receive("a", 0, nil)
			suppressor := h.requeuer()
			act := store.Act{Verb: "suppress", Who: "me", Why: "a replay"}
			t.wantErr("another revision", errors.Join(suppressor.Suppress(t.context(), act, store.RowRevision{Number: r.Number, Revision: r.Revision + 1})...), semel.ErrChanged)
			t.must(errors.Join(suppressor.Suppress(t.context(), act, r.Seen())...))
			if got, err := h.leases().Claim(t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 10, Lease: long}); err != nil || len(got) != 0 {
				t.Errorf("claimed %+v, %v", got, err)
			}
			now := h.number(r.Number)
			if now.State != store.StateParked || now.Reason != reasonname.Suppressed {
				t.Errorf("%+v", now)
			}
			h.wantOutcome("a", store.Parked)
			if acts, err := h.Store.(store.Inbox).Acts(t.context(), r.Number, 0); err != nil || len(acts) != 1 || acts[0].Verb != "suppress" || acts[0].Why != "a replay" || acts[0].Result != "done" {
				t.Errorf("%+v, %v", acts, err)
			}
			t.wantErr("suppressed twice", errors.Join(suppressor.Suppress(t.context(), act, now.Seen())...), semel.ErrState)
			t.must(errors.Join(h.requeuer().Requeue(t.context(), store.Act{Verb: "send", Who: "me", Why: "it is needed"}, now.Seen())...))
			h.works(r.Number)
			t.wantErr("a suppression of a completed intent", errors.Join(suppressor.Suppress(t.context(), act, h.number(r.Number).Seen())...), semel.ErrState)
		})
}
