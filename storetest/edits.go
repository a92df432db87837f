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

// keyedEdit is how the act of an edit begins in a store whose hashes are keyed (admin.EditAct).
var keyedEdit = regexp.MustCompile(`^hmac-sha256 [0-9a-f]{64} \(1 bytes\) to [0-9a-f]{64} \(3 bytes\): `)

func hasEdits(store any) bool {
	_, editor := store.(admin.Editor)
	return editor
}

func (h *fixture[Tx]) editor() admin.Editor { return h.Store.(admin.Editor) }

// edits gives a row another body.
func (h *fixture[Tx]) edits(r store.StoredRow, body string) store.StoredRow {
	h.t.Helper()
	h.t.must(h.editor().Edit(h.t.context(), r.Number, r.Revision, []byte(body), act("edit")))
	return h.number(r.Number)
}

// wantEdits wants edits with these bodies before them, of which the last gave the row its own.
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

// edited are the laws of bodies that people give rows.
func (s suite[Tx]) edited(t *T) {
	s.run(t, "G5_an_edit_changes_the_body_and_keeps_the_one_before",
		"An edited row has the new body and all else that it had, and the store has each body that it had before.", func(t *T, h *fixture[Tx]) {
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
			if want := fmt.Sprintf("sha256 %x (1 bytes) to %x (3 bytes): ", sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b\x00\xff"))); !strings.HasPrefix(acts[0].Why, want) && !keyedEdit.MatchString(acts[0].Why) {
				t.Errorf("the act says %q, want %q", acts[0].Why, want)
			}
		})
	s.run(t, "G5_copies_of_the_original_are_duplicates_of_the_edit",
		"What the producer sent is known as before an edit: a copy of it is a duplicate, and another content, also the edited one, a conflict.", func(t *T, h *fixture[Tx]) {
			r := h.edits(h.park("a"), "b")
			h.wantKinds(h.asks(h.print("a", 1)), already(store.Parked))
			t.must(h.retry(r.Seen()))
			h.wantKinds(h.asks(h.print("a", 1)), already(store.Waiting))
			h.works(r.Number)
			h.wantKinds(h.asks(h.print("a", 1)), already(store.Applied))
			h.wantKinds(h.asks(h.print("a", 2)), conflict)
			h.wantCount("a", 1)
		})
	s.run(t, "trap_T46_nothing_is_edited_that_has_taken_effect",
		"An edit is refused, and nothing changed, where the row, or the first content of a conflict, has taken effect or may.", func(t *T, h *fixture[Tx]) {
			h.deliver(h.print("a", 1))
			h.conflict("a", 2)
			h.wantUnedited(h.row("a", true), semel.ErrConflict)
			r := h.park("b")
			t.must(h.retry(r.Seen()))
			h.wantUnedited(h.number(r.Number), semel.ErrState)
			h.works(r.Number)
			h.wantUnedited(h.number(r.Number), semel.ErrState)
			closed := h.park("c")
			t.must(h.discard(closed.Seen()))
			h.wantUnedited(h.number(closed.Number), semel.ErrState)
		})
	s.run(t, "trap_T46_nothing_is_edited_that_was_seen_otherwise",
		"An edit names the revision that it saw, and is refused once the row has another.", func(t *T, h *fixture[Tx]) {
			r := h.park("a")
			h.edits(r, "b")
			h.wantUnedited(r, semel.ErrChanged)
			r.Number += 1000
			h.wantUnedited(r, semel.ErrChanged)
		})
	s.run(t, "G5_what_was_sent_without_an_identity_is_not_edited", "A row that is never run gets no other body.", func(t *T, h *fixture[Tx]) {
		r := h.put("a", store.Row{Surrogate: true, State: store.StateParked, Reason: semel.ReasonNoIdentity, Message: &semel.Message{Body: []byte("a")}})
		h.wantUnedited(r, semel.ErrState)
	})
	if s.h.Can.Retention && !s.h.Can.Days {
		s.editedAndReaped(t)
	}
}

// wantUnedited wants an edit refused, of which nothing is left.
func (h *fixture[Tx]) wantUnedited(r store.StoredRow, want error) {
	h.t.Helper()
	kept, err := h.editor().Edits(h.t.context(), r.Number, true)
	h.t.must(err)
	if err := h.editor().Edit(h.t.context(), r.Number, r.Revision, []byte("refused"), act("edit")); !errors.Is(err, want) {
		h.t.Errorf("an edit of a row that is %s: %v, want %v", r.State, err, want)
	}
	left, err := h.editor().Edits(h.t.context(), r.Number, true)
	h.t.must(err)
	if len(left) != len(kept) {
		h.t.Errorf("an edit that was refused is kept: %+v", left)
	}
	for _, row := range h.list(store.RowFilter{Numbers: []int64{r.Number}, Bodies: true}) {
		if string(row.Message.Body) == "refused" {
			h.t.Errorf("an edit that was refused changed the body")
		}
	}
}

// editedAndReaped: what a body was is removed with the body that is.
func (s suite[Tx]) editedAndReaped(t *T) {
	s.run(t, "law_11_bodies_before_an_edit_go_with_the_row_s_own",
		"Where the bodies of what has ended are removed, so are those before edits, and the hashes stay.", func(t *T, h *fixture[Tx]) {
			r := h.edits(h.park("a"), "b")
			t.must(h.retry(r.Seen()))
			h.works(r.Number)
			h.retain(store.Retention{Keep: long, Bodies: soon})
			h.bodiless(r.Number)
			all, err := h.editor().Edits(t.context(), r.Number, true)
			t.must(err)
			if len(all) != 1 || all[0].Was != nil || !all[0].Removed || all[0].Before != sha256.Sum256([]byte("a")) {
				t.Errorf("the edits are %+v", all)
			}
		})
}

// bodiless reaps until the row has no body.
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

// auditKey is a key, of no secret.
var auditKey = []byte("0123456789abcdef0123456789abcdef")

func (h *fixture[Tx]) auditor() admin.Auditor { return h.Store.(admin.Auditor) }

// does records acts of no row.
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

// sealed are the verbs of the chain's lines, in their order, a few read at a time.
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

// wantChain holds the chain to be of these acts, and whole.
func (h *fixture[Tx]) wantChain(key []byte, want ...string) {
	h.t.Helper()
	verbs, lines := h.sealed()
	if fmt.Sprint(verbs) != fmt.Sprint(want) {
		h.t.Errorf("the chain has %q, want %q", verbs, want)
	}
	h.wantWhole(key, lines)
}

// wantWhole verifies a chain.
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
		if f.Kind == audit.Unkeyed { // a case's key may come later
			continue
		}
		h.t.Errorf("the chain: %s", f)
	}
	if n := int64(len(lines)); end.Sequence != n {
		h.t.Errorf("the chain has %d lines and ends at line %d", n, end.Sequence)
	}
}

// audited are the laws of admin.Auditor.
func (s suite[Tx]) audited(t *T) {
	s.run(t, "G6_acts_are_sealed_each_once_in_their_order",
		"What is committed and not sealed is sealed, some at a time, in the order of the acts, with what was done, by whom, when and why; nothing is sealed twice.", func(t *T, h *fixture[Tx]) {
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
	s.run(t, "G6_a_line_has_its_act_as_it_stands",
		"A line has the row, verb, who, why and result of its act, its time to the microsecond, and a time of its own.", func(t *T, h *fixture[Tx]) {
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
	s.run(t, "G6_a_chain_under_a_key_goes_on_under_one",
		"A chain may get a key, and then goes on with one; who has none is refused, and nothing is sealed.", func(t *T, h *fixture[Tx]) {
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
	s.run(t, "G6_a_chain_under_a_key_that_is_only_continued_is_not_begun",
		"Who only continues a chain seals nothing under a key where no line is, and nothing behind an end under another key.", func(t *T, h *fixture[Tx]) {
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
	s.run(t, "G6_a_chain_without_a_key_is_begun_and_gets_one",
		"Without a key Continue changes nothing, and with a key it lets a chain without one get its first line under the key.", func(t *T, h *fixture[Tx]) {
			h.does("a")
			h.wantSealed(admin.Sealing{Continue: true}, 1)
			h.does("b")
			h.wantSealed(admin.Sealing{Key: auditKey, Continue: true}, 1)
			h.wantChain(auditKey, "a", "b")
		})
	s.run(t, "G6_acts_and_seals_at_once",
		"Of several that seal at once, beside operators that act, no act is sealed twice and none is left out.", func(t *T, h *fixture[Tx]) {
			auditor, recorder := h.auditor(), h.Store.(admin.Recorder) // what a store lacks fails here
			together(8, func(i int) {
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
				t.Error("nobody seals any more, and somebody is said to")
			}
			_, lines := h.sealed()
			if len(lines) != 40 {
				t.Errorf("40 acts are in %d lines", len(lines))
			}
			h.wantWhole(nil, lines)
			h.wantUnsealed()
		})
}

// wantUnsealed holds the acts that are not sealed to be these.
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
		h.t.Errorf("not sealed are %q, want %q", verbs, want)
	}
}
