package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// changedFixture is a fixture of a consumer whose derivation, the rule that forms a message's identity, has changed.
// The field scope is the number for identities of the previous derivation, and the field now is the number for
// identities of the current derivation.
type changedFixture[Tx any] struct {
	*fixture[Tx]
	now int64
}

func (s suite[Tx]) openChanged(t *T) changedFixture[Tx] {
	h := s.open(t)
	return changedFixture[Tx]{h, h.scopeOf("billing", "shop", 1)}
}

// markWithPrevious returns a mark with a current identity and with a previous identity.
func (h changedFixture[Tx]) markWithPrevious(id, former string, content byte) store.Mark {
	m := h.markWithoutPrevious(id, content)
	m.Previous = &store.Mark{Scope: h.scope, ID: []byte(former), Strict: true}
	return m
}

// markWithoutPrevious returns a mark with a current identity and without a previous identity.
func (h changedFixture[Tx]) markWithoutPrevious(id string, content byte) store.Mark {
	return h.withScope(h.contentMark(id, content), h.now)
}

// testPreviousIdentities tests marks that have a previous identity.
func (s suite[Tx]) testPreviousIdentities(t *T) {
	t.Run("A7_a_mark_is_fresh_if_both_identities_are",
		"A message that is applied under both identities is seen under either; after a rollback or a trim it is seen under neither.", func(t *T) {
			h := s.openChanged(t)
			h.wantKinds(h.deliver(h.markWithPrevious("a", "1", 1)), fresh)
			h.wantKinds(h.asks(h.markWithPrevious("a", "1", 1), h.markWithoutPrevious("a", 1), h.contentMark("1", 1)), already(store.Applied), already(store.Applied), already(store.Applied))
			b, v := h.begin(h.markWithPrevious("b", "2", 1), h.markWithPrevious("c", "3", 1))
			h.wantKinds(v, fresh, fresh)
			h.commit(b, store.Ending{Trim: []int{0, 1}})
			h.wantKinds(h.asks(h.markWithPrevious("b", "2", 1), h.markWithoutPrevious("c", 1), h.contentMark("3", 1)), fresh, fresh, fresh)
			h.wantCount("a", 1)
		})
	t.Run("A7_equal_content_under_the_previous_identity_is_a_duplicate",
		"A message that is applied under its previous identity is seen, and no marker under its current identity says that it was applied again.", func(t *T) {
			h := s.openChanged(t)
			h.deliver(h.contentMark("1", 1))
			b, v := h.begin(h.markWithPrevious("a", "1", 1), h.markWithoutPrevious("b", 1))
			h.wantKinds(v, already(store.Applied), fresh)
			if !v[0].Former || v[1].Former {
				t.Errorf("whether the previous identity decided is reported as %t and %t", v[0].Former, v[1].Former)
			}
			h.commit(b, store.Ending{})
			h.wantKinds(h.asks(h.markWithoutPrevious("a", 1), h.markWithoutPrevious("b", 1)), fresh, already(store.Applied))
		})
	t.Run("A7_other_content_under_the_previous_identity_is_a_conflict",
		"Several messages with the same previous identity are not copies of each other.", func(t *T) {
			h := s.openChanged(t)
			h.deliver(h.contentMark("1", 1))
			b, v := h.begin(h.markWithPrevious("a", "1", 2))
			h.wantKinds(v, conflict)
			h.commit(b, store.Ending{})
			h.wantKinds(h.asks(h.markWithoutPrevious("a", 2)), fresh)
		})
	t.Run("A7_content_that_cannot_be_compared_is_a_conflict_on_request",
		"A marker without a fingerprint, or with a fingerprint of another version, does not prove equal content.", func(t *T) {
			h := s.openChanged(t)
			other := h.contentMark("2", 1)
			other.Fingerprint.Version = 2
			h.deliver(h.mark("1"), other)
			one, two := h.markWithPrevious("a", "1", 1), h.markWithPrevious("b", "2", 1)
			h.wantKinds(h.asks(one, two), conflict, conflict)
			one.Previous.Strict, two.Previous.Strict = false, false
			h.wantKinds(h.asks(one, two), already(store.Applied), already(store.Applied))
		})
	t.Run("A7_the_current_identity_decides_if_it_is_marked",
		"A message that is marked under its current identity is judged by that marker, and leaves no mark under a previous identity.", func(t *T) {
			h := s.openChanged(t)
			h.deliver(h.markWithoutPrevious("a", 1))
			b, v := h.begin(h.markWithPrevious("a", "1", 1), h.markWithPrevious("a2", "2", 1))
			h.wantKinds(v, already(store.Applied), fresh)
			h.commit(b, store.Ending{})
			h.wantKinds(h.asks(h.contentMark("1", 1), h.contentMark("2", 1)), fresh, already(store.Applied))
		})
	t.Run("A7_the_outcome_under_a_previous_identity_is_returned", "A message that is parked under its previous identity counts as parked, not as applied.", func(t *T) {
		h := s.openChanged(t)
		for _, o := range []store.Outcome{store.Applied, store.Waiting, store.Parked, store.DeadLettered, store.Discarded} {
			m := h.contentMark(fmt.Sprint(o), 1)
			m.As = o
			h.deliver(m)
			h.wantKinds(h.asks(h.markWithPrevious("a", fmt.Sprint(o), 1)), already(o))
		}
	})
	t.Run("A7_two_messages_of_a_batch_with_one_previous_identity_are_processed_in_turn",
		"A mark that the batch itself wrote, and may still take back, decides nothing.", func(t *T) {
			h := s.openChanged(t)
			b, v := h.begin(h.markWithPrevious("a", "1", 1), h.markWithPrevious("b", "1", 1), h.markWithPrevious("c", "1", 2))
			h.wantKinds(v, fresh, busy, busy)
			h.commit(b, store.Ending{Trim: []int{0}})
			h.wantKinds(h.asks(h.markWithPrevious("a", "1", 1)), fresh)
			h.wantKinds(h.asks(h.markWithPrevious("b", "1", 1)), fresh)
			h.wantKinds(h.asks(h.markWithPrevious("c", "1", 2)), fresh)
		})
	t.Run("A7_marks_of_many_in_any_order_are_judged_one_by_one",
		"In batches of any size each mark is answered by the marker under its current identity, or else by the one under its previous identity.", s.testChangedAtRandom)
	if s.h.Can.Inbox {
		s.testPreviousRows(t)
	}
	if s.h.Can.MarkIn {
		s.testPreviousCallers(t)
	}
	s.testConcurrentPreviousIdentities(t)
}

// testChangedAtRandom processes random batches and compares the store's answers with the answers of a simple model. The
// messages n and n+4000 have the same previous identity.
func (s suite[Tx]) testChangedAtRandom(t *T) {
	h := s.openChanged(t)
	random := rand.New(rand.NewPCG(7, 7))
	own, former := map[int]bool{}, map[int]int{} // former says which of the two messages was marked under the previous identity
	for _, n := range []int{1, 2, 50, 499, 500, 501, 1203} {
		var marks []store.Mark
		var want []store.Verdict
		for _, one := range random.Perm(4000)[:n] {
			id := one + 4000*random.IntN(2)
			mark, verdict := h.markWithPrevious(fmt.Sprint(id), fmt.Sprint(one), byte(1+id/4000)), fresh
			older := random.IntN(4) == 0
			if older {
				mark = h.contentMark(fmt.Sprint(one), byte(1+id/4000))
			}
			there, marked := former[one]
			switch {
			case !older && own[id], marked && there == id:
				verdict = already(store.Applied)
			case marked:
				verdict = conflict
			default:
				own[id], former[one] = !older, id
			}
			marks, want = append(marks, mark), append(want, verdict)
		}
		b, v := h.begin(marks...)
		h.wantKinds(v, want...)
		h.commit(b, store.Ending{})
	}
}

// testPreviousRows tests the rows of messages whose content differs from the content that was marked under their
// previous identity.
func (s suite[Tx]) testPreviousRows(t *T) {
	t.Run("A7_a_conflict_with_a_previous_identity_has_its_own_row",
		"The row of a conflict is under the current identity and counts its copies; a conflict found under a previous identity is counted on the row there.", func(t *T) {
			h := s.openChanged(t)
			h.deliver(h.contentMark("1", 1))
			h.conflict("1", 3) // the older release parks the message
			h.park("2")
			parked := h.markWithPrevious("c", "2", 1)
			parked.Previous.Strict = false
			for i, c := range []struct {
				mark  store.Mark
				known bool
			}{{h.markWithPrevious("a", "1", 2), false}, {h.markWithPrevious("a", "1", 2), true}, {h.markWithPrevious("b", "1", 3), true}, {parked, true}} {
				b, v := h.begin(c.mark)
				if v[0].Known != c.known && v[0].Kind == store.Conflict {
					t.Errorf("delivery %d of the conflict is known: %t, want %t", i, v[0].Known, c.known)
				}
				r := store.Row{Conflict: v[0].Kind == store.Conflict, Repeat: c.known, State: store.StateParked, Reason: reasonname.FormerConflict, Message: &semel.Message{}}
				h.commit(b, store.Ending{Rows: []store.Row{r}})
			}
			for id, repeated := range map[string]int64{"a": 1, "1": 1, "2": 1} {
				rows := h.list(store.RowFilter{IDs: []string{id}})
				if len(rows) != 1 || int64(rows[0].Repeated) != repeated {
					t.Errorf("the rows of %s are %+v", id, rows)
				}
			}
		})
	t.Run("A7_a_conflict_with_a_previous_identity_is_retried_under_its_current_one",
		"An operator retries the conflict; no marker exists under its current identity before, and no other conflict without a marker is retried.", func(t *T) {
			h := s.openChanged(t)
			if !s.h.Can.Leases {
				return
			}
			h.deliver(h.contentMark("1", 1))
			b, _ := h.begin(h.markWithPrevious("a", "1", 2))
			h.commit(b, store.Ending{Rows: []store.Row{{Conflict: true, State: store.StateParked, Reason: reasonname.FormerConflict, Message: &semel.Message{}}}})
			row := h.list(store.RowFilter{IDs: []string{"a"}})[0]
			t.must(errors.Join(h.requeuer().Requeue(t.context(), store.Act{Verb: "retry", Who: "a test"}, row.Seen())...))
			h.wantKinds(h.asks(h.markWithoutPrevious("a", 2), h.markWithPrevious("a", "1", 2)), already(store.Waiting), already(store.Waiting))
			claimed, err := h.leases().Claim(t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 10, Lease: long})
			t.must(err)
			if len(claimed) != 1 {
				t.Fatalf("claimed %+v", claimed)
			}
			lost, err := h.leases().End(t.context(), []store.ClaimEnding{{Claim: store.Claim{Number: claimed[0].Number, Token: claimed[0].Token}, State: store.StateCompleted, Ran: true}})
			t.must(err)
			if len(lost) > 0 {
				t.Error("the claim is lost")
			}
			h.wantKinds(h.asks(h.markWithoutPrevious("a", 2), h.contentMark("1", 1)), already(store.Applied), already(store.Applied))
		})
}

// testPreviousCallers tests previous identities in a transaction of the caller.
func (s suite[Tx]) testPreviousCallers(t *T) {
	t.Run("A7_a_callers_marks_use_both_identities",
		"MarkIn and ReceiveIn also mark under the previous identity, judge by it, and take back the marks that do not apply.", func(t *T) {
			h := s.openChanged(t)
			h.deliver(h.contentMark("1", 1), h.markWithoutPrevious("c", 1))
			b, _ := h.begin()
			v, err := h.Store.(store.CallerTx[Tx]).MarkIn(t.context(), b.Tx(store.All), []store.Mark{h.markWithPrevious("a", "1", 1), h.markWithPrevious("b", "2", 1), h.markWithPrevious("c", "3", 1), h.markWithPrevious("d", "1", 2)})
			t.must(err)
			h.wantKinds(v, already(store.Applied), fresh, already(store.Applied), conflict)
			if receiver, ok := h.Store.(store.CallerTx[Tx]); ok && s.h.Can.Inbox {
				marks := []store.Mark{h.markWithPrevious("e", "1", 1), h.markWithPrevious("f", "4", 1)}
				marks[0].As, marks[1].As = store.Waiting, store.Waiting
				v, err = receiver.ReceiveIn(t.context(), b.Tx(store.All), marks, []*semel.Message{{}, {}}, reasonname.None)
				t.must(err)
				h.wantKinds(v, already(store.Applied), fresh)
			}
			h.commit(b, store.Ending{})
			h.wantKinds(h.asks(h.markWithoutPrevious("a", 1), h.markWithoutPrevious("b", 1), h.contentMark("2", 1), h.contentMark("3", 1), h.markWithoutPrevious("d", 2), h.markWithoutPrevious("e", 1)),
				fresh, already(store.Applied), already(store.Applied), fresh, fresh, fresh)
		})
}

// testConcurrentPreviousIdentities tests two releases of a consumer that form identities by different rules
// (derivations) and run at the same time.
func (s suite[Tx]) testConcurrentPreviousIdentities(t *T) {
	t.Run("A7_two_releases_at_once_have_one_effect",
		"Batches that mark under previous identities only, and batches that mark under both, wait for each other in one order, and one of them has the effect.", func(t *T) {
			h := s.openChanged(t)
			const n = 8
			runConcurrently(n, func(i int) {
				var marks []store.Mark
				for j := range n {
					id := fmt.Sprint((i*3 + j) % n)
					if i%2 == 0 {
						marks = append(marks, h.contentMark(id, 1))
					} else {
						marks = append(marks, h.markWithPrevious(id, id, 1))
					}
				}
				h.deliver(marks...)
			})
			for i := range n {
				h.wantCount(fmt.Sprint(i), 1)
			}
		})
	if s.h.Can.OneWriter {
		return
	}
	t.Run("A7_a_previous_identity_in_flight_elsewhere_is_busy",
		"While another transaction holds the previous identity, the verdict is busy, and no mark under the current identity stays.", func(t *T) {
			h := s.openChanged(t)
			other, _ := h.begin(h.contentMark("1", 1))
			b, v, err := h.Store.Begin(t.context(), store.TxOptions{MarkLock: 20 * time.Millisecond}, []store.Mark{h.markWithPrevious("a", "1", 1)})
			if err == nil {
				h.wantKinds(v, busy)
				h.commit(b, store.Ending{})
			} else {
				h.wantClass(err, store.ClassContended)
			}
			other.Rollback(t.context())
			h.wantKinds(h.deliver(h.markWithPrevious("a", "1", 1)), fresh)
		})
}

func (h *fixture[Tx]) derivations() admin.Derivations { return h.Store.(admin.Derivations) }

// testDerivations tests the records of a consumer's derivations (the rules that form identities).
func (s suite[Tx]) testDerivations(t *T) {
	if s.h.Can.OneConsumer {
		s.testOneDerivation(t)
		return
	}
	s.testPreviousIdentities(t)
	s.run(t, "A7_derivations_are_kept_by_consumer",
		"A derivation is stored unchanged; its generation and text belong to its consumer permanently, even if many processes record it at once.", func(t *T, h *fixture[Tx]) {
			d := h.derivations()
			long := strings.Repeat("\xff\x00 'long\"", admin.MaxDerivation/8)
			added := make([]bool, 16)
			runConcurrently(len(added), func(i int) {
				var err error
				added[i], err = d.AddDerivation(t.context(), admin.Derivation{Consumer: "billing", Text: "first", Former: admin.NoFormer})
				t.must(err)
			})
			if n := len(slices.DeleteFunc(added, func(a bool) bool { return !a })); n != 1 {
				t.Errorf("%d of 16 have recorded it", n)
			}
			for _, c := range []struct {
				d    admin.Derivation
				want bool
			}{
				{admin.Derivation{Consumer: "billing", Generation: 1, Text: long, Former: 0}, true},
				{admin.Derivation{Consumer: "billing", Generation: 1, Text: "another", Former: admin.NoFormer}, false},
				{admin.Derivation{Consumer: "billing", Generation: 2, Text: "first", Former: admin.NoFormer}, false},
				{admin.Derivation{Consumer: "audit", Generation: 0, Text: "first", Former: admin.NoFormer}, true},
			} {
				if added, err := d.AddDerivation(t.context(), c.d); err != nil || added != c.want {
					t.Errorf("%.60v is added: %t, %v", c.d, added, err)
				}
			}
			all, err := d.Derivations(t.context(), "billing")
			t.must(err)
			if len(all) != 2 || all[0].Text != "first" || all[0].Former != admin.NoFormer || all[1].Text != long || all[1].Former != 0 || all[1].Generation != 1 || all[0].Retired || time.Since(all[0].First).Abs() > 24*365*100*time.Hour {
				t.Errorf("there are %.300v", all)
			}
			if every, err := d.Derivations(t.context(), ""); err != nil || len(every) != 3 || every[0].Consumer != "audit" {
				t.Errorf("all derivations are %.300v, %v", every, err)
			}
		})
	s.run(t, "A7_a_derivation_is_retired_with_the_act",
		"Retiring a derivation is recorded once, ends derivations that named it as previous, and can be taken back.", func(t *T, h *fixture[Tx]) {
			d := h.derivations()
			for g, former := range []int64{admin.NoFormer, 0} {
				_, err := d.AddDerivation(t.context(), admin.Derivation{Consumer: "billing", Generation: int64(g), Text: string(rune('a' + g)), Former: former})
				t.must(err)
			}
			act := store.Act{Verb: "retire", Who: "a test", Why: "because"}
			t.must(d.RetireDerivation(t.context(), "billing", 0, true, act))
			for generation, retired := range map[int64]bool{0: true, 1: false, 7: true} {
				if err := d.RetireDerivation(t.context(), "billing", generation, retired, act); !errors.Is(err, semel.ErrChanged) {
					t.Errorf("generation %d to %t: %v", generation, retired, err)
				}
			}
			all, err := d.Derivations(t.context(), "billing")
			t.must(err)
			if len(all) != 2 || !all[0].Retired || all[1].Retired || all[1].Former != admin.NoFormer {
				t.Errorf("there are %+v", all)
			}
			t.must(d.RetireDerivation(t.context(), "billing", 0, false, act))
			if s.h.Can.Inbox {
				acts, err := h.inbox().Acts(t.context(), 0, 10)
				t.must(err)
				if len(acts) != 2 || acts[0].Verb != "retire" || acts[0].Why != "because" {
					t.Errorf("the acts are %+v", acts)
				}
			}
		})
	s.run(t, "trap_23_a_consumers_name_has_an_owner",
		"An owner is replaced only by a caller that names the current owner; all names that have records are listed.", func(t *T, h *fixture[Tx]) {
			d := h.derivations()
			for _, c := range []struct {
				was, owner string
				want       bool
			}{{"", "a", true}, {"", "b", false}, {"b", "c", false}, {"a", "b\xff", true}, {"b\xff", "", true}, {"", "d", true}} {
				if set, err := d.SetOwner(t.context(), "billing", c.was, c.owner); err != nil || set != c.want {
					t.Errorf("%q to %q: %t, %v", c.was, c.owner, set, err)
				}
			}
			for name, want := range map[string]string{"billing": "d", "audit": ""} {
				if owner, err := d.Owner(t.context(), name); err != nil || owner != want {
					t.Errorf("%s is owned by %q, %v", name, owner, err)
				}
			}
			h.scopeOf("audit", "", 0)
			h.scopeOf("audit", "shop", 0)
			if names, err := d.Consumers(t.context()); err != nil || !slices.Equal(names, []string{"audit", "billing"}) {
				t.Errorf("the consumers are %q, %v", names, err)
			}
		})
}

// testOneDerivation tests a store that can have markers for only one derivation (the rule that forms identities).
func (s suite[Tx]) testOneDerivation(t *T) {
	t.Run("A7_a_store_of_one_generation_accepts_one_derivation",
		"If a store cannot keep markers of another generation, it refuses to record another derivation.", func(t *T) {
			d := s.open(t).derivations()
			added, err := d.AddDerivation(t.context(), admin.Derivation{Consumer: "billing", Text: "first", Former: admin.NoFormer})
			if err != nil || !added {
				t.Errorf("%t, %v", added, err)
			}
			t.wantErr("a second", errOf(d.AddDerivation(t.context(), admin.Derivation{Consumer: "billing", Generation: 1, Text: "second"})), semel.ErrUnsupported)
		})
}
