package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/intents"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/store"
)

func hasErasure(store any) bool {
	_, able := store.(admin.Eraser)
	return able
}

// erases erases all data that a filter selects, with at most the given number of identities in each transaction.
func (h *fixture[Tx]) erases(f admin.ErasureFilter, most int, dry bool) (sum admin.Erased) {
	h.t.Helper()
	for calls := 0; sum.Next.Part != admin.ErasureDone; calls++ {
		done, err := h.Store.(admin.Eraser).Erase(h.t.context(), admin.Erasing{Filter: f, After: sum.Next, Most: most, DryRun: dry, Act: act("erase")})
		h.t.must(err)
		sum.Next, sum.Left = done.Next, append(sum.Left, done.Left...)
		sum.Identities, sum.Rows = sum.Identities+done.Identities, sum.Rows+done.Rows
		sum.Results, sum.Keys = sum.Results+done.Results, sum.Keys+done.Keys
		if calls > 1000 {
			h.t.Fatalf("the erasure does not end: it is at %+v", sum.Next)
		}
	}
	return sum
}

// wantErased checks the numbers that an erasure has reported.
func (h *fixture[Tx]) wantErased(got admin.Erased, identities, rows, results int64, left ...admin.ErasureWhy) {
	h.t.Helper()
	if got.Identities != identities || got.Rows != rows || got.Results != results || got.Keys != 0 {
		h.t.Errorf("%d identities with %d rows, %d results and %d keys are erased, want %d with %d and %d", got.Identities, got.Rows, got.Results, got.Keys, identities, rows, results)
	}
	var why []admin.ErasureWhy
	for _, l := range got.Left {
		why = append(why, l.Why)
	}
	if fmt.Sprint(why) != fmt.Sprint(left) {
		h.t.Errorf("left are %+v, want %q", got.Left, left)
	}
}

// wantGone checks that the erasure removed all contents of a row's message except its identity.
func (h *fixture[Tx]) wantGone(number int64) {
	h.t.Helper()
	r := h.number(number)
	m := r.Message
	if r.Reason != reasonname.Erased || !r.BodyRemoved || len(m.Body)+len(m.Key)+len(m.Headers) > 0 || r.Size != 0 || r.FirstError+r.LastError != "" || len(r.Steps) > 0 || r.Line != "" ||
		m.Attributes.Subject+m.Attributes.ID+m.Attributes.Source+m.Attributes.DataSchema+m.Origin.BrokerID != "" || !m.Attributes.Time.IsZero() {
		h.t.Errorf("of row %d there is left %+v with %+v", number, r, m)
	}
}

// secret returns a message that contains the given word in every field that a producer can write.
func secret(word string) *semel.Message {
	return &semel.Message{
		Topic: "payments", Key: []byte(word), Body: []byte("{\"mail\": \"" + word + "\"}"),
		Headers:    semel.Headers{{Name: "mail", Value: []byte(word)}, {Name: word, Value: nil}},
		Attributes: semel.Attributes{Type: "paid", Subject: word, DataSchema: word, Source: word, ID: word},
		Origin:     semel.Origin{Partition: 3, Offset: 7, BrokerID: word},
	}
}

// closed parks a message, discards it, and returns its row.
func (h *fixture[Tx]) closed(id, word string) store.StoredRow {
	h.t.Helper()
	r := h.put(id, store.Row{State: store.StateParked, Reason: semel.ReasonPermanent, Message: secret(word), FirstError: "of " + word, LastError: "of " + word})
	h.t.must(h.discard(r.Seen()))
	return h.number(r.Number)
}

// testErasures tests what an erasure removes.
func (s suite[Tx]) testErasures(t *T) {
	s.run(t, "P4_an_identity_is_erased_with_all_its_rows_and_absorbs_copies",
		"The message and the errors of each row of an identity are erased; the identity and its marker stay, so copies are duplicates.", func(t *T, h *fixture[Tx]) {
			r := h.closed("a", "Ana")
			h.conflict("a", 2)
			other := h.rowOfIdentity("a", true)
			h.t.must(h.discard(other.Seen()))
			kept := h.closed("b", "Bo")
			h.wantErased(h.erases(admin.ErasureFilter{IDs: []string{"a"}}, 0, false), 1, 2, 0)
			h.wantGone(r.Number)
			h.wantGone(other.Number)
			after := h.number(r.Number)
			if after.Key != r.Key || after.State != r.State || after.Fingerprint != r.Fingerprint || after.Message.Topic != "payments" || after.Message.Origin.Offset != 7 || after.Message.Type() != "paid" || after.Revision == r.Revision {
				t.Errorf("the row was %+v and is %+v", r, after)
			}
			if r := h.number(kept.Number); string(r.Message.Key) != "Bo" || r.Reason != semel.ReasonPermanent {
				t.Errorf("the row of another identity is %+v", r)
			}
			h.wantKinds(h.asks(h.contentMark("a", 1)), already(store.Discarded))
			h.wantKinds(h.asks(h.contentMark("a", 9)), conflict)
			h.wantActs(r.Number, "discard done", "erase done")
			h.wantErased(h.erases(admin.ErasureFilter{IDs: []string{"a"}}, 0, false), 0, 0, 0)
		})
	s.run(t, "P4_a_row_that_may_run_is_left_and_reported",
		"An identity is erased completely or not at all; a row that may still run is not touched.", func(t *T, h *fixture[Tx]) {
			h.closed("a", "Ana")
			h.conflict("a", 2)
			parked := h.rowOfIdentity("a", true)
			dead := h.put("b", store.Row{State: store.StateDeadLettered, Reason: semel.ReasonExhausted, Message: secret("Bo")})
			got := h.erases(admin.ErasureFilter{}, 0, false)
			h.wantErased(got, 0, 0, 0, admin.ErasureUnfinished, admin.ErasureUnfinished)
			if l := got.Left; len(l) == 2 && (l[0].Row != parked.Number || l[0].State != store.StateParked || l[1].Row != dead.Number || l[1].Key.ID != "b") {
				t.Errorf("left are %+v", l)
			}
			if r := h.rowOfIdentity("a", false); len(r.Message.Body) == 0 || r.Reason == reasonname.Erased {
				t.Errorf("the other row is %+v", r)
			}
			h.wantActs(parked.Number)
		})
	s.run(t, "P4_an_erased_row_cannot_be_retried", "An erased row can be neither retried nor discarded.", func(t *T, h *fixture[Tx]) {
		r := h.closed("a", "Ana")
		h.erases(admin.ErasureFilter{}, 0, false)
		r = h.number(r.Number)
		if requeuer, able := h.Store.(admin.Requeuer); able {
			if err := errors.Join(requeuer.Requeue(t.context(), act("retry"), r.Seen())...); err == nil {
				t.Error("an erased row was retried")
			}
		}
		if err := h.discard(r.Seen()); err == nil {
			t.Error("an erased row was discarded")
		}
		h.wantGone(r.Number)
	})
	s.run(t, "P4_a_dry_run_counts_what_a_run_does", "A dry run counts what a run would erase; it changes and records nothing.", func(t *T, h *fixture[Tx]) {
		r := h.closed("a", "Ana")
		h.closed("b", "Bo")
		h.park("c")
		h.wantErased(h.erases(admin.ErasureFilter{}, 1, true), 2, 2, 0, admin.ErasureUnfinished)
		if after := h.number(r.Number); after.Revision != r.Revision || string(after.Message.Key) != "Ana" {
			t.Errorf("the row is %+v", after)
		}
		h.wantActs(r.Number, "discard done")
		h.wantErased(h.erases(admin.ErasureFilter{}, 1, false), 2, 2, 0, admin.ErasureUnfinished)
	})
	s.testErasureFilters(t)
	if s.h.Can.Edits {
		s.run(t, "P4_G5_bodies_before_edits_are_erased",
			"No payload of an erased row is kept anywhere; the hashes of its edits stay, because the acts contain them.", func(t *T, h *fixture[Tx]) {
				r := h.edits(h.park("Ana"), "Bo")
				h.t.must(h.discard(r.Seen()))
				h.wantErased(h.erases(admin.ErasureFilter{}, 0, false), 1, 1, 0)
				edits, err := h.editor().Edits(t.context(), r.Number, true)
				if err != nil || len(edits) != 1 || edits[0].Was != nil || !edits[0].Removed || edits[0].SizeBefore != len("Ana") {
					t.Errorf("its edits are %+v: %v", edits, err)
				}
			})
	}
	if s.h.Can.Results {
		s.testErasedResults(t)
	}
	if s.h.Can.Intents && s.h.Can.Emission && !s.h.Can.Days {
		s.testErasedOutputs(t)
	}
	if s.h.Can.Generations && !s.h.Can.Days && !s.h.Can.OneConsumer {
		s.testErasedGenerations(t)
	}
	if s.h.Can.Audit {
		s.run(t, "P4_G6_the_chain_of_acts_stays_unbroken", "An erasure adds acts and changes no sealed act.", func(t *T, h *fixture[Tx]) {
			h.closed("a", "Ana")
			h.wantSealed(admin.Sealing{Whole: true}, 1)
			h.erases(admin.ErasureFilter{}, 0, false)
			h.wantSealed(admin.Sealing{Whole: true}, 1)
			h.wantChain(nil, "discard", "erase")
		})
	}
}

// testErasureFilters tests which identities a filter matches.
func (s suite[Tx]) testErasureFilters(t *T) {
	s.run(t, "P4_each_filter_chooses_alone_and_with_others", "A filter matches an identity if one of its rows matches all fields of the filter.", func(t *T, h *fixture[Tx]) {
		a, b := h.closed("a", "Ana"), h.closed("b", "Bo")
		all := func(f admin.ErasureFilter, want int64) {
			t.Helper()
			h.t = t
			got := h.erases(f, 0, true)
			if got.Identities != want {
				t.Errorf("%+v chooses %d identities, want %d", f, got.Identities, want)
			}
		}
		all(admin.ErasureFilter{}, 2)
		all(admin.ErasureFilter{Consumers: []string{"billing", "x"}}, 2)
		all(admin.ErasureFilter{Consumers: []string{"shipping"}}, 0)
		all(admin.ErasureFilter{Sources: []string{"shop"}}, 2)
		all(admin.ErasureFilter{Sources: []string{""}}, 0)
		all(admin.ErasureFilter{IDs: []string{"b", "c", strings.Repeat("long", 100)}}, 1)
		all(admin.ErasureFilter{States: []store.RowState{store.StateDiscarded, store.StateParked}}, 2)
		all(admin.ErasureFilter{States: []store.RowState{store.StateCompleted}}, 0)
		all(admin.ErasureFilter{Reason: semel.ReasonPermanent}, 2)
		all(admin.ErasureFilter{Reason: semel.ReasonExhausted}, 0)
		all(admin.ErasureFilter{Type: "paid"}, 2)
		all(admin.ErasureFilter{Type: "sold"}, 0)
		all(admin.ErasureFilter{Header: semel.Header{Name: "mail", Value: []byte("Ana")}}, 1)
		all(admin.ErasureFilter{Header: semel.Header{Name: "mail", Value: []byte("An")}}, 0)
		all(admin.ErasureFilter{Header: semel.Header{Name: "mail", Value: []byte("Bo")}, IDs: []string{"a"}}, 0)
		all(admin.ErasureFilter{From: a.ReceivedAt, Before: b.ReceivedAt.Add(time.Millisecond)}, 2)
		all(admin.ErasureFilter{From: b.ReceivedAt.Add(time.Millisecond)}, 0)
		all(admin.ErasureFilter{Before: a.ReceivedAt}, 0)
	})
	s.run(t, "P4_slices_visit_each_identity_once",
		"Each call continues where the previous one ended, and an identity with several rows counts once.", func(t *T, h *fixture[Tx]) {
			for i := range 5 {
				id := fmt.Sprint("m", i)
				h.closed(id, "Ana")
				h.conflict(id, 2)
				r := h.rowOfIdentity(id, true)
				h.t.must(h.discard(r.Seen()))
			}
			for _, most := range []int{1, 2, 3, 100} {
				h.wantErased(h.erases(admin.ErasureFilter{}, most, true), 5, 10, 0)
			}
			h.wantErased(h.erases(admin.ErasureFilter{}, 3, false), 5, 10, 0)
		})
}

func (s suite[Tx]) testErasedResults(t *T) {
	s.run(t, "P4_a_result_is_erased_and_its_marker_stays",
		"After an erasure a copy is still a duplicate and gets no result. The record has no row, and a hash of the identity.", func(t *T, h *fixture[Tx]) {
			longest := 1000
			if s.h.Can.LongestID > 0 {
				longest = s.h.Can.LongestID
			}
			marks := []store.Mark{h.contentMark("a", 1), h.contentMark("b", 1), h.contentMark(strings.Repeat("x", longest), 1)}
			b, _ := h.begin(marks...)
			for i := range marks {
				h.keeps(b, i, marks[i], []byte("made"))
			}
			h.commit(b, store.Ending{})
			h.wantErased(h.erases(admin.ErasureFilter{States: []store.RowState{store.StateCompleted}}, 0, false), 0, 0, 0)
			h.wantErased(h.erases(admin.ErasureFilter{From: time.Now().Add(time.Hour)}, 0, false), 0, 0, 0)
			h.wantErased(h.erases(admin.ErasureFilter{IDs: []string{"a"}}, 0, false), 1, 0, 1)
			h.wantResults(marks[:2], nil, []byte("made"))
			h.wantErased(h.erases(admin.ErasureFilter{Before: time.Now().Add(time.Hour)}, 1, false), 2, 0, 2)
			h.wantResults(marks, nil, nil, nil)
			h.wantKinds(h.asks(h.contentMark("a", 1)), already(store.Applied))
			acts, err := h.inbox().Acts(t.context(), 0, 0)
			h.t.must(err)
			if len(acts) != 3 || acts[0].Row != 0 || !strings.HasPrefix(acts[0].Result, "done: identity ") || acts[0].Result == acts[1].Result {
				t.Errorf("the acts are %+v", acts)
			}
		})
}

// testErasedOutputs tests that an erasure of a message also erases the intents that the message caused.
func (s suite[Tx]) testErasedOutputs(t *T) {
	cause := func() string {
		return string(intents.Cause(semel.Key{Consumer: "billing", Source: "shop", ID: "a"}))
	}
	s.run(t, "P4_intents_are_erased_with_their_message",
		"Intents contain the same person's data: they are erased together with their message, or neither is.", func(t *T, h *fixture[Tx]) {
			r := h.closed("a", "Ana")
			n := h.sendIntents(cause(), "x", "y")
			waits := h.writeIntents(cause(), "z")[0]
			f := admin.ErasureFilter{IDs: []string{"a"}}
			got := h.erases(f, 0, false)
			h.wantErased(got, 0, 0, 0, admin.ErasureUnfinished)
			if len(got.Left) == 1 && got.Left[0].Row != waits {
				t.Errorf("left is %+v", got.Left)
			}
			z := h.number(waits)
			h.t.must(h.discard(store.RowRevision{Number: waits, Revision: z.Revision}))
			h.wantErased(h.erases(f, 0, false), 4, 4, 0)
			for _, number := range append(n, r.Number, waits) {
				h.wantGone(number)
			}
			h.wantEmitted(h.emits(admin.EmitOptions{}, cause()), admin.Emitted{Left: 3})
			if rows := h.list(store.RowFilter{}); bytes.Contains(fmt.Append(nil, rows), []byte("Ana")) {
				t.Errorf("there is %+v", rows)
			}
		})
}

// testErasedGenerations tests the erasure of a message that two generations have processed, because the consumer
// was rebuilt.
func (s suite[Tx]) testErasedGenerations(t *T) {
	s.run(t, "P4_G2_an_identity_is_erased_in_each_generation_of_its_consumer",
		"An erasure covers all generations, even if the filter matches a header that only one generation has kept.", func(t *T, h *fixture[Tx]) {
			generations := h.Store.(admin.Generations)
			h.t.must(generations.BeginGenerations(t.context(), "billing"))
			_, err := generations.OpenGeneration(t.context(), "billing", act("rebuild"))
			h.t.must(err)
			r := h.closed("a", "Ana")
			h.scope = h.scopeOf(admin.GenerationName("billing", 1), "shop", 0)
			h.put("a", store.Row{State: store.StateParked, Reason: semel.ReasonPermanent, Message: &semel.Message{Body: []byte("Ana")}})
			rebuilt := h.list(store.RowFilter{Consumer: "billing@1"})[0]
			other := h.closed("b", "Bo")
			f := admin.ErasureFilter{Header: semel.Header{Name: "mail", Value: []byte("Ana")}}
			got := h.erases(f, 0, false)
			h.wantErased(got, 0, 0, 0, admin.ErasureUnfinished)
			if len(got.Left) == 1 && got.Left[0].Row != rebuilt.Number {
				t.Errorf("left is %+v", got.Left)
			}
			h.t.must(h.discard(rebuilt.Seen()))
			h.wantErased(h.erases(admin.ErasureFilter{IDs: []string{"a"}}, 0, true), 2, 2, 0)
			h.wantErased(h.erases(f, 0, false), 2, 2, 0)
			h.wantGone(r.Number)
			h.wantGone(rebuilt.Number)
			h.wantErased(h.erases(admin.ErasureFilter{Consumers: []string{"billing"}}, 0, false), 0, 0, 0)
			h.wantErased(h.erases(admin.ErasureFilter{Consumers: []string{"billing@1"}}, 0, false), 1, 1, 0)
			h.wantGone(other.Number)
		})
}

// streamMark returns a mark of a version in a stream that begins at the first version that the store sees. The
// parameter as is the outcome of the message. The store checks the mark against the stream only if the outcome is
// store.Applied.
func (h *fixture[Tx]) streamMark(stream string, n int64, as store.Outcome) store.Mark {
	m := h.versionMark(stream, n, as)
	m.Version.Start, m.Version.Asks = 0, as == store.Applied
	return m
}

// firstSeen tests at which version a stream begins if the first versions that the store saw did not take effect.
func (h *fixture[Tx]) firstSeen() {
	row := func(i int, state store.RowState) store.Row {
		return store.Row{Mark: i, State: state, Reason: semel.ReasonPermanent, Message: &semel.Message{}}
	}
	b, v := h.begin(h.streamMark("parked", 6, store.Parked), h.streamMark("waits", 5, store.Waiting), h.streamMark("parked", 5, store.Parked), h.streamMark("trimmed", 5, store.Waiting))
	h.wantKinds(v, fresh, fresh, fresh, fresh)
	h.commit(b, store.Ending{Trim: []int{3}, Rows: []store.Row{row(0, store.StateParked), row(1, store.StateReceived), row(2, store.StateParked)}})
	b, v = h.begin(h.streamMark("beside", 5, store.Parked), h.streamMark("beside", 6, store.Applied))
	h.wantKinds(v, fresh, gap)
	h.commit(b, store.Ending{Trim: []int{1}, Rows: []store.Row{row(0, store.StateParked)}})
	if receiver, ok := h.Store.(store.CallerTx[Tx]); ok {
		b, _ = h.begin()
		_, err := receiver.ReceiveIn(h.t.context(), b.Tx(store.All), []store.Mark{h.streamMark("received", 5, store.Waiting)}, []*semel.Message{{}}, reasonname.None)
		h.t.must(err)
		h.commit(b, store.Ending{})
		h.wantAt("received", 4)
	}
	for _, stream := range []string{"parked", "waits", "beside"} {
		h.wantAt(stream, 4)
		h.wantKinds(h.asks(h.streamMark(stream, 7, store.Applied)), gap)
	}
	h.wantAt("trimmed", 0)
	// The stream "parked" has begun, so version 3 does not change its position. The stream "copied" has not begun: it
	// only has a marker that was written without a version. Duplicates of a message that was marked without a version
	// do not start the stream, but version 8 starts it.
	b, _ = h.begin(h.streamMark("parked", 3, store.Parked))
	h.commit(b, store.Ending{Rows: []store.Row{row(0, store.StateParked)}})
	h.wantAt("parked", 4)
	old := h.streamMark("copied", 3, store.Applied)
	old.Version = versions.Position{}
	h.deliver(old)
	b, _ = h.begin(h.streamMark("copied", 3, store.Applied))
	h.commit(b, store.Ending{})
	h.wantAt("copied", -1)
	b, _ = h.begin(h.streamMark("copied", 8, store.Parked))
	h.commit(b, store.Ending{Rows: []store.Row{row(0, store.StateParked)}})
	h.wantAt("copied", 7)
}

// passesParked skips a version whose row was parked for a reason other than a gap in its stream: the row and its marker
// stay parked.
func (h *fixture[Tx]) passesParked() {
	m := h.versionMark("passed", 1, store.Parked)
	m.Version.Asks = false
	b, _ := h.begin(m)
	h.commit(b, store.Ending{Rows: []store.Row{{State: store.StateParked, Reason: semel.ReasonPrecondition, Message: &semel.Message{}}}})
	h.blocks("passed", 2, long)
	h.t.must(h.streams().SkipTo(h.t.context(), h.storedStream("passed"), 1, act("skip")))
	if got := h.rowOfIdentity(string(m.ID), false); got.State != store.StateParked || got.Reason != semel.ReasonPrecondition {
		h.t.Errorf("the parked version is %s, %s", got.State, got.Reason)
	}
	h.wantOutcome(string(m.ID), store.Parked)
	h.wantAt("passed", 1)
	h.t.must(h.streams().SkipTo(h.t.context(), h.storedStream("passed"), 2, act("skip")))
}
