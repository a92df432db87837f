package storetest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/audit"
	"github.com/semel-go/semel/store"
)

// keyedEdit is a pattern for the end of the audit record of an edit, in a store that computes the hashes with a
// key (admin.EditAct).
var keyedEdit = regexp.MustCompile(`; hmac-sha256 [0-9a-f]{64} \(1 bytes\) to [0-9a-f]{64} \(3 bytes\)$`)

func hasEdits(store any) bool {
	_, editor := store.(admin.Editor)
	return editor
}

func (h *fixture[Tx]) editor() admin.Editor { return h.Store.(admin.Editor) }

// edits replaces the body of a row, and returns the changed row.
func (h *fixture[Tx]) edits(r store.StoredRow, body string) store.StoredRow {
	h.t.Helper()
	h.t.must(h.editor().Edit(h.t.context(), r.Number, r.Revision, []byte(body), "", act("edit")))
	return h.number(r.Number)
}

// wantEdits checks that the edits of the row wrote the given bodies, in order. The last of the given bodies is the
// row's current body.
func (h *fixture[Tx]) wantEdits(number int64, bodies ...string) {
	h.t.Helper()
	all, err := h.editor().Edits(h.t.context(), number, true)
	h.t.must(err)
	if len(all) != len(bodies)-1 {
		h.t.Fatalf("%d edits, want %d: %+v", len(all), len(bodies)-1, all)
	}
	for i, e := range all {
		was, is := []byte(bodies[i]), []byte(bodies[i+1])
		if e.Number != i+1 || e.Who != "ana" || e.At.IsZero() || e.Removed || !bytes.Equal(e.Was, was) ||
			e.Before != sha256.Sum256(was) || e.After != sha256.Sum256(is) || e.SizeBefore != len(was) || e.SizeAfter != len(is) {
			h.t.Errorf("edit %d is %+v", i, e)
		}
	}
	rows := h.list(store.RowFilter{Numbers: []int64{number}, Bodies: true})
	if last := bodies[len(bodies)-1]; string(rows[0].Message.Body) != last || rows[0].Size != len(last) {
		h.t.Errorf("the body is %.40q of %d bytes, want %.40q", rows[0].Message.Body, rows[0].Size, last)
	}
	if short, err := h.editor().Edits(h.t.context(), number, false); err != nil || len(short) != len(all) || len(short) > 0 && short[0].Was != nil {
		h.t.Errorf("without bodies: %+v, %v", short, err)
	}
}

func (s suite[Tx]) testEdits(t *T) {
	s.run(t, "G5_an_edit_changes_the_body_and_keeps_the_previous_one",
		"An edit changes only the body; the store keeps every previous body.", func(t *T, h *fixture[Tx]) {
			r := h.park("a")
			after := h.edits(r, "b\x00\xff")
			if after.Key != r.Key || after.Fingerprint != r.Fingerprint || after.State != r.State || after.Revision == r.Revision || after.Reason != r.Reason {
				t.Errorf("the row was %+v and is %+v", r, after)
			}
			h.wantEdits(r.Number, "a", "b\x00\xff")
			after = h.edits(after, "")
			h.edits(after, "c")
			h.wantEdits(r.Number, "a", "b\x00\xff", "", "c")
			h.wantEdits(h.park("other").Number, "other")
			h.wantActs(r.Number, "edit done", "edit done", "edit done")
			acts, err := h.inbox().Acts(t.context(), r.Number, 0)
			t.must(err)
			if want := fmt.Sprintf("; sha256 %x (1 bytes) to %x (3 bytes)", sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b\x00\xff"))); !strings.HasSuffix(acts[0].Why, want) && !keyedEdit.MatchString(acts[0].Why) {
				t.Errorf("the act has the reason %q, want %q", acts[0].Why, want)
			}
		})
	s.run(t, "G5_an_edit_stores_the_type_of_the_new_body",
		"An edit that names a type stores it with the body, and its audit record contains both types.", func(t *T, h *fixture[Tx]) {
			r := h.put("a", store.Row{State: store.StateParked, Reason: semel.ReasonExhausted, Message: &semel.Message{
				Topic: "payments", Body: []byte("a"), Attributes: semel.Attributes{Type: "piad", Subject: "7"}, Headers: semel.Headers{{Name: "region", Value: []byte("eu")}}}})
			edit := func(body, kind, want string) {
				t.must(h.editor().Edit(t.context(), r.Number, r.Revision, []byte(body), kind, act("edit")))
				r = h.number(r.Number)
				region, _ := r.Message.Headers.Get("region")
				if r.Message.Type() != want || r.Message.Subject() != "7" || r.Message.Topic != "payments" || string(region) != "eu" {
					t.Errorf("after an edit with type %q the message is %+v, want type %q", kind, r.Message, want)
				}
				if found := h.list(store.RowFilter{Numbers: []int64{r.Number}, Type: want}); len(found) != 1 {
					t.Errorf("%d rows are listed with type %q, want the edited row", len(found), want)
				}
			}
			edit("b", "", "piad")
			edit("c", "paid", "paid")
			edit("d", "paid", "paid")
			acts, err := h.inbox().Acts(t.context(), r.Number, 0)
			t.must(err)
			for i, want := range []bool{false, true, false} {
				if is := strings.HasSuffix(acts[i].Why, `; type "piad" to "paid"`); is != want {
					t.Errorf("the audit record of edit %d has the reason %q", i+1, acts[i].Why)
				}
			}
		})
	s.run(t, "G5_copies_of_the_original_are_duplicates_of_the_edit",
		"After an edit the store still recognises what the producer sent: a copy is a duplicate; other content, even the edited content, is a conflict.", func(t *T, h *fixture[Tx]) {
			r := h.edits(h.park("a"), "b")
			h.wantKinds(h.asks(h.contentMark("a", 1)), already(store.Parked))
			t.must(h.retry(r.Seen()))
			h.wantKinds(h.asks(h.contentMark("a", 1)), already(store.Waiting))
			h.works(r.Number)
			h.wantKinds(h.asks(h.contentMark("a", 1)), already(store.Applied))
			h.wantKinds(h.asks(h.contentMark("a", 2)), conflict)
			h.wantCount("a", 1)
		})
	s.run(t, "trap_T46_a_row_that_has_taken_effect_is_not_edited",
		"An edit is refused and changes nothing if the row, or the first content of a conflict, has taken effect or may have.", func(t *T, h *fixture[Tx]) {
			h.deliver(h.contentMark("a", 1))
			h.conflict("a", 2)
			h.wantUnedited(h.rowOfIdentity("a", true), semel.ErrConflict)
			r := h.park("b")
			t.must(h.retry(r.Seen()))
			h.wantUnedited(h.number(r.Number), semel.ErrState)
			h.works(r.Number)
			h.wantUnedited(h.number(r.Number), semel.ErrState)
			closed := h.park("c")
			t.must(h.discard(closed.Seen()))
			h.wantUnedited(h.number(closed.Number), semel.ErrState)
		})
	s.run(t, "trap_T46_a_row_that_has_changed_is_not_edited",
		"An edit names the revision that it is based on, and is refused if the row has changed since.", func(t *T, h *fixture[Tx]) {
			r := h.park("a")
			h.edits(r, "b")
			h.wantUnedited(r, semel.ErrChanged)
			r.Number += 1000
			h.wantUnedited(r, semel.ErrChanged)
		})
	s.run(t, "G5_a_row_without_an_identity_is_not_edited", "A row without an identity never runs, so its body cannot be edited.", func(t *T, h *fixture[Tx]) {
		r := h.put("a", store.Row{Surrogate: true, State: store.StateParked, Reason: semel.ReasonNoIdentity, Message: &semel.Message{Body: []byte("a")}})
		h.wantUnedited(r, semel.ErrState)
	})
	if s.h.Can.Retention && !s.h.Can.Days {
		s.testEditedAndReaped(t)
	}
}

// wantUnedited checks that the store refuses an edit of the row with the expected error, and that the edit changes
// nothing.
func (h *fixture[Tx]) wantUnedited(r store.StoredRow, expected error) {
	h.t.Helper()
	kept, err := h.editor().Edits(h.t.context(), r.Number, true)
	h.t.must(err)
	if err := h.editor().Edit(h.t.context(), r.Number, r.Revision, []byte("refused"), "refused", act("edit")); !errors.Is(err, expected) {
		h.t.Errorf("an edit of a row that is %s: %v, want %v", r.State, err, expected)
	}
	left, err := h.editor().Edits(h.t.context(), r.Number, true)
	h.t.must(err)
	if len(left) != len(kept) {
		h.t.Errorf("a refused edit is kept: %+v", left)
	}
	for _, row := range h.list(store.RowFilter{Numbers: []int64{r.Number}, Bodies: true}) {
		if string(row.Message.Body) == "refused" {
			h.t.Errorf("a refused edit changed the body")
		}
	}
}

// testEditedAndReaped tests that the previous bodies of an edited row are removed together with its current body.
func (s suite[Tx]) testEditedAndReaped(t *T) {
	s.run(t, "law_11_bodies_before_an_edit_are_removed_with_the_current_body",
		"When the reaper removes the bodies of finished messages, it also removes their bodies before edits; the hashes stay.", func(t *T, h *fixture[Tx]) {
			r := h.edits(h.park("a"), "b")
			t.must(h.retry(r.Seen()))
			h.works(r.Number)
			h.retain(store.Retention{Keep: long, Bodies: shortRetention})
			h.bodiless(r.Number)
			all, err := h.editor().Edits(t.context(), r.Number, true)
			t.must(err)
			if len(all) != 1 || all[0].Was != nil || !all[0].Removed || all[0].Before != sha256.Sum256([]byte("a")) {
				t.Errorf("the edits are %+v", all)
			}
		})
}

// bodiless removes old bodies until the row has no body.
func (h *fixture[Tx]) bodiless(number int64) {
	h.t.Helper()
	ctx := h.t.context()
	for !h.number(number).BodyRemoved {
		h.t.must(h.reaper().Progressed(ctx, "billing", nil))
		h.pass(2)
		if moment(ctx); ctx.Err() != nil {
			h.t.Fatal("the body was not removed")
		}
	}
}

func hasAudit(store any) bool {
	_, auditor := store.(admin.Auditor)
	_, recorder := store.(admin.Recorder)
	return auditor && recorder
}

// auditKey is a key for tests; it is not secret.
var auditKey = []byte("0123456789abcdef0123456789abcdef")

func (h *fixture[Tx]) auditor() admin.Auditor { return h.Store.(admin.Auditor) }

// does writes audit records that belong to no row, one for each of the given verbs.
func (h *fixture[Tx]) does(verbs ...string) {
	h.t.Helper()
	for _, verb := range verbs {
		h.t.must(h.Store.(admin.Recorder).Record(h.t.context(), act(verb)))
	}
}

func (h *fixture[Tx]) wantSealed(o admin.Sealing, want int) {
	h.t.Helper()
	done, err := h.auditor().Seal(h.t.context(), o)
	h.t.must(err)
	if done.Lines != want || done.Elsewhere {
		h.t.Errorf("sealed %+v, want %d lines", done, want)
	}
}

// sealed returns the lines of the audit chain, and their verbs in order. Each call of the store's method Seals reads
// two lines of the chain.
func (h *fixture[Tx]) sealed() (verbs []string, all []admin.AuditedSeal) {
	h.t.Helper()
	for after := int64(math.MinInt64); ; {
		some, err := h.auditor().Seals(h.t.context(), after, 2)
		h.t.must(err)
		for _, l := range some {
			verbs, all, after = append(verbs, l.Act.Verb), append(all, l), l.Sequence
		}
		if len(some) < 2 {
			return verbs, all
		}
	}
}

// wantChain checks that the audit chain contains exactly the audit records with the given verbs, and that the chain is
// unbroken.
func (h *fixture[Tx]) wantChain(key []byte, want ...string) {
	h.t.Helper()
	verbs, lines := h.sealed()
	if fmt.Sprint(verbs) != fmt.Sprint(want) {
		h.t.Errorf("the chain has %q, want %q", verbs, want)
	}
	h.wantWhole(key, lines)
}

// wantWhole verifies that an audit chain is complete and unchanged.
func (h *fixture[Tx]) wantWhole(key []byte, lines []admin.AuditedSeal) {
	h.t.Helper()
	end, err := h.auditor().SealHead(h.t.context())
	h.t.must(err)
	v := audit.NewVerifier(key)
	v.ExpectEnd(end, "the end")
	for _, l := range lines {
		v.Add(audit.Line{Seal: l.Seal, Compared: true, Now: l.Now})
	}
	for _, f := range v.End().Findings {
		if f.Kind == audit.Unkeyed { // a chain may start without a key
			continue
		}
		h.t.Errorf("the chain: %s", f)
	}
	if n := int64(len(lines)); end.Sequence != n {
		h.t.Errorf("the chain has %d lines and ends at line %d", n, end.Sequence)
	}
}

// testAudit tests the interface admin.Auditor.
func (s suite[Tx]) testAudit(t *T) {
	s.run(t, "G6_acts_are_sealed_once_and_in_order",
		"Seal seals committed acts in order, up to its limit, with the act, who, when and why; no act is sealed twice.", func(t *T, h *fixture[Tx]) {
			h.wantSealed(admin.Sealing{Whole: true}, 0)
			h.wantChain(nil)
			h.does("a", "b", "c", "d", "e")
			h.wantSealed(admin.Sealing{Most: 2}, 2)
			h.wantSealed(admin.Sealing{Most: 2}, 2)
			h.wantChain(nil, "a", "b", "c", "d")
			h.wantUnsealed("e")
			h.wantSealed(admin.Sealing{}, 1)
			h.wantSealed(admin.Sealing{Whole: true}, 0)
			h.wantChain(nil, "a", "b", "c", "d", "e")
			h.wantUnsealed()
		})
	s.run(t, "G6_a_line_contains_its_act",
		"A line holds the row, verb, who, why and result of its act, the time of the act in microseconds, and its own time.", func(t *T, h *fixture[Tx]) {
			r := h.park("a")
			t.must(h.discard(r.Seen()))
			h.wantSealed(admin.Sealing{}, 1)
			_, lines := h.sealed()
			acts, err := h.inbox().Acts(t.context(), r.Number, 0)
			t.must(err)
			l, want := lines[0], acts[0]
			if l.Now == nil || *l.Now != l.Act || l.Act.Row != r.Number || l.Act.Verb != want.Verb || l.Act.Who != want.Who || l.Act.Why != want.Why || l.Act.Result != want.Result ||
				l.Act.At.Sub(want.At).Abs() > 2e6 || l.At.Before(l.Act.At.Truncate(1e6)) {
				t.Errorf("the line is %+v of %+v, the act %+v", l.Seal, l.Now, want)
			}
		})
	s.run(t, "G6_a_chain_with_a_key_continues_only_with_it",
		"A key can be added to a chain; from then on a call without the key is refused and seals nothing.", func(t *T, h *fixture[Tx]) {
			h.does("a")
			h.wantSealed(admin.Sealing{}, 1)
			h.does("b")
			h.wantSealed(admin.Sealing{Key: auditKey}, 1)
			h.does("c")
			if done, err := h.auditor().Seal(t.context(), admin.Sealing{}); !errors.Is(err, semel.ErrState) || done.Lines != 0 {
				t.Errorf("without a key: %+v, %v", done, err)
			}
			h.wantUnsealed("c")
			h.wantSealed(admin.Sealing{Key: auditKey}, 1)
			h.wantChain(auditKey, "a", "b", "c")
		})
	s.run(t, "G6_continue_begins_no_chain_with_a_key",
		"With Continue, a call seals nothing under a key if the chain has no line, and nothing after a line under another key.", func(t *T, h *fixture[Tx]) {
			refused := func(key []byte) {
				if done, err := h.auditor().Seal(t.context(), admin.Sealing{Key: key, Continue: true}); !errors.Is(err, semel.ErrState) || done.Lines != 0 {
					t.Errorf("%+v, %v", done, err)
				}
			}
			h.does("a")
			refused(auditKey)
			h.wantUnsealed("a")
			h.wantSealed(admin.Sealing{Key: auditKey}, 1)
			h.does("b")
			refused([]byte("another key of at least 32 bytes!"))
			h.wantUnsealed("b")
			h.wantSealed(admin.Sealing{Key: auditKey, Continue: true}, 1)
			h.wantChain(auditKey, "a", "b")
		})
	s.run(t, "G6_a_chain_without_a_key_can_get_one",
		"Without a key Continue has no effect; with a key it lets a chain without a key get its first line under the key.", func(t *T, h *fixture[Tx]) {
			h.does("a")
			h.wantSealed(admin.Sealing{Continue: true}, 1)
			h.does("b")
			h.wantSealed(admin.Sealing{Key: auditKey, Continue: true}, 1)
			h.wantChain(auditKey, "a", "b")
		})
	s.run(t, "G6_acts_and_seals_at_once",
		"If several processes seal while operators act, no act is sealed twice and none is left out.", func(t *T, h *fixture[Tx]) {
			auditor, recorder := h.auditor(), h.Store.(admin.Recorder) // a store that lacks one of the interfaces fails here
			runConcurrently(8, func(i int) {
				for range 10 {
					var err error
					if i < 4 {
						err = recorder.Record(t.context(), act(fmt.Sprint("act of ", i)))
					} else {
						_, err = auditor.Seal(t.context(), admin.Sealing{Most: 3})
					}
					if err != nil {
						t.Errorf("beside others: %v", err)
					}
				}
			})
			done, err := auditor.Seal(t.context(), admin.Sealing{Whole: true})
			t.must(err)
			if done.Elsewhere {
				t.Error("all sealing has ended, but the store reports that it is in progress")
			}
			_, lines := h.sealed()
			if len(lines) != 40 {
				t.Errorf("40 acts are in %d lines", len(lines))
			}
			h.wantWhole(nil, lines)
			h.wantUnsealed()
		})
}

// wantUnsealed checks which audit records are not yet in the audit chain.
func (h *fixture[Tx]) wantUnsealed(want ...string) {
	h.t.Helper()
	var verbs []string
	for after := int64(math.MinInt64); ; {
		some, err := h.auditor().AuditedActs(h.t.context(), after, 2)
		h.t.must(err)
		for _, a := range some {
			if after = a.Number; a.Sequence == 0 {
				verbs = append(verbs, a.Verb)
			}
		}
		if len(some) < 2 {
			break
		}
	}
	if fmt.Sprint(verbs) != fmt.Sprint(want) {
		h.t.Errorf("unsealed acts are %q, want %q", verbs, want)
	}
}
