package storetest

import (
	"errors"
	"fmt"
	"math"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/audit"
)

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
	t.Run("G6_acts_are_sealed_each_once_in_their_order",
		"What is committed and not sealed is sealed, some at a time, in the order of the acts, with what was done, by whom, when and why; nothing is sealed twice.",
		func(t *T) {
			h := s.opened(t)
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
	t.Run("G6_a_line_has_its_act_as_it_stands",
		"A line has the row, verb, who, why and result of its act, its time to the microsecond, and a time of its own.",
		func(t *T) {
			h := s.opened(t)
			r := h.park("a")
			t.must(errors.Join(h.inbox().Discard(t.context(), act("discard"), r.Seen())...))
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
	t.Run("G6_a_chain_under_a_key_goes_on_under_one",
		"A chain may get a key, and then goes on with one; who has none is refused, and nothing is sealed.",
		func(t *T) {
			h := s.opened(t)
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
	t.Run("G6_a_chain_under_a_key_that_is_only_continued_is_not_begun",
		"Who only continues a chain seals nothing under a key where no line is, and nothing behind an end under another key.",
		func(t *T) {
			h := s.opened(t)
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
	t.Run("G6_a_chain_without_a_key_is_begun_and_gets_one",
		"Without a key Continue changes nothing, and with a key it lets a chain without one get its first line under the key.",
		func(t *T) {
			h := s.opened(t)
			h.does("a")
			h.wantSealed(admin.Sealing{Continue: true}, 1)
			h.does("b")
			h.wantSealed(admin.Sealing{Key: auditKey, Continue: true}, 1)
			h.wantChain(auditKey, "a", "b")
		})
	t.Run("G6_acts_and_seals_at_once",
		"Of several that seal at once, beside operators that act, no act is sealed twice and none is left out.",
		func(t *T) {
			h := s.opened(t)
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
