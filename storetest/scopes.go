package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// testScopes tests scopes: the numbers that a store assigns to a consumer, a source and a generation.
func (s suite[Tx]) testScopes(t *T) {
	s.run(t, "a_scope_keeps_its_number",
		"The same consumer, source and generation always get the same number, also from concurrent calls, and others get another number.", func(t *T, h *fixture[Tx]) {
			numbers := make([][5]int64, 20)
			runConcurrently(20, func(i int) {
				for j := range 5 {
					numbers[i][j] = h.scopeNumber("billing", fmt.Sprintf("\xff source\x00 %d", j), 0)
				}
			})
			different := map[int64]bool{h.scope: true}
			for j, n := range numbers[0] {
				different[n] = true
				for i := range numbers {
					if numbers[i][j] != n {
						t.Errorf("scope %d is %d and %d", j, n, numbers[i][j])
					}
				}
			}
			if len(different) != 6 {
				t.Errorf("6 scopes have %d numbers", len(different))
			}
		})
	t.Run("a_scope_has_the_same_number_in_a_request_for_many",
		"Scopes returns the numbers that Scope returns, in the order of the sources, for new and existing scopes, also from concurrent calls.", s.testInternsMany)
	s.run(t, "a_call_with_a_cancelled_context_changes_nothing",
		"A call whose context has ended fails with an error of the store and leaves nothing behind.", func(t *T, h *fixture[Tx]) {
			ctx, cancel := context.WithCancel(t.context())
			cancel()
			_, _, err := h.Store.Begin(ctx, store.TxOptions{}, h.markAll("a"))
			if err == nil {
				t.Fatal("Begin did not fail")
			}
			h.wantClass(err, store.ClassDown, store.ClassContended)
			h.wantKinds(h.asks(h.mark("a")), fresh)
		})
}

// testInternsMany requests many scopes with one call, if the store supports the call.
func (s suite[Tx]) testInternsMany(t *T) {
	h := s.open(t)
	interner, able := h.Store.(admin.Interner)
	if !able {
		return
	}
	sources := []string{"shop", "shop"}
	for j := range 300 {
		sources = append(sources, fmt.Sprintf("\xff {\"source\",\\}\x00 %d", (j*7)%300))
	}
	h.scopeOf("billing", sources[100], 0)
	numbers := make([][]int64, 8)
	errs := make([]error, len(numbers))
	runConcurrently(len(numbers), func(i int) {
		numbers[i], errs[i] = interner.Scopes(t.context(), "billing", sources[i*10:], 0)
	})
	for i := range numbers {
		t.must(errs[i])
		if len(numbers[i]) != len(sources[i*10:]) {
			t.Fatalf("%d sources have %d numbers", len(sources[i*10:]), len(numbers[i]))
		}
		for j, n := range numbers[i] {
			if want := h.scopeOf("billing", sources[i*10+j], 0); n != want {
				t.Errorf("in one call, source %d has scope %d, and alone %d", i*10+j, n, want)
			}
		}
	}
	if none, err := interner.Scopes(t.context(), "billing", nil, 0); err != nil || len(none) != 0 {
		t.Errorf("a call without sources returned the scopes %v, %v", none, err)
	}
}

// testPositions tests the interface source.PositionStore.
func (s suite[Tx]) testPositions(t *T) {
	s.run(t, "case_13_a_position_is_kept_by_consumer_and_lane",
		"The store returns the position that was saved last, for its consumer and lane only.", func(t *T, h *fixture[Tx]) {
			p := h.Store.(source.PositionStore)
			if _, ok, err := p.LoadPosition(t.context(), "c", "l"); ok || err != nil {
				t.Fatal("an empty store has a position", err)
			}
			first := source.Position{Offset: 1 << 40, Length: 1 << 41, Check: []byte{0, 0xff}}
			t.must(p.SavePosition(t.context(), "c", "l", first))
			t.must(p.SavePosition(t.context(), "c", "m\x00\xff", source.Position{Offset: 7}))
			second := source.Position{Offset: 5, Length: 6, Check: []byte("x")}
			s.wantPosition(t, p, "l", first)
			t.must(p.SavePosition(t.context(), "c", "l", second))
			s.wantPosition(t, p, "l", second)
			s.wantPosition(t, p, "m\x00\xff", source.Position{Offset: 7})
			for _, other := range [][2]string{{"d", "l"}, {"c", "m"}} {
				if _, ok, err := p.LoadPosition(t.context(), other[0], other[1]); ok || err != nil {
					t.Errorf("%q of %q has the position of another, %v", other[1], other[0], err)
				}
			}
		})
}

// testKeeping tests the method KeepPosition of source.PositionStore.
func (s suite[Tx]) testKeeping(t *T) {
	s.run(t, "trap_T92_a_position_is_kept_once_and_all_get_it",
		"If several processes keep the first position of a lane at once, one position is kept and all of them get it.", func(t *T, h *fixture[Tx]) {
			p := h.Store.(source.PositionStore)
			kept := make([]source.Position, keepers)
			errs := make([]error, keepers)
			runConcurrently(keepers, func(i int) {
				mine := source.Position{Offset: int64(i), Length: int64(i), Check: []byte{byte(i), 0}}
				kept[i], errs[i] = p.KeepPosition(t.context(), "c", "l", mine)
			})
			for i := range kept {
				t.must(errs[i])
				if k := kept[i]; k.Offset != kept[0].Offset || k.Length != k.Offset || string(k.Check) != string([]byte{byte(k.Offset), 0}) {
					t.Errorf("KeepPosition returned %+v to one process and %+v to another", kept[0], k)
				}
			}
			s.wantPosition(t, p, "l", kept[0])
			t.must(p.SavePosition(t.context(), "c", "l", source.Position{Offset: 99}))
			again, err := p.KeepPosition(t.context(), "c", "l", source.Position{Offset: 1})
			t.must(err)
			if again.Offset != 99 {
				t.Errorf("a position that was saved later was overwritten by %+v", again)
			}
		})
}

// keepers is the number of processes that store a position at the same time.
const keepers = 4

func (s suite[Tx]) wantPosition(t *T, p source.PositionStore, lane string, want source.Position) {
	t.Helper()
	got, ok, err := p.LoadPosition(t.context(), "c", lane)
	if !ok || err != nil || got.Offset != want.Offset || got.Length != want.Length || string(got.Check) != string(want.Check) {
		t.Errorf("lane %s has %+v (%t, %v), want %+v", lane, got, ok, err, want)
	}
}

// testReceives tests messages that are stored in a transaction of the caller.
func (s suite[Tx]) testReceives(t *T) {
	s.run(t, "F3_a_message_received_in_the_callers_transaction_waits_after_its_commit",
		"The marker and the row commit or roll back with the caller's transaction; a copy gets the outcome of the first and changes nothing.", func(t *T, h *fixture[Tx]) {
			receive := func(b store.Batch[Tx], ids ...string) []store.Verdict {
				var marks []store.Mark
				var messages []*semel.Message
				for _, id := range ids {
					m := h.contentMark(id, 1)
					m.As = store.Waiting
					marks, messages = append(marks, m), append(messages, &semel.Message{Body: []byte(id)})
				}
				v, err := h.Store.(store.CallerTx[Tx]).ReceiveIn(t.context(), b.Tx(store.All), marks, messages, reasonname.None)
				t.must(err)
				return v
			}
			b, _ := h.begin()
			h.wantKinds(receive(b, "a"), fresh)
			b.Rollback(t.context())
			h.wantKinds(h.asks(h.contentMark("a", 1)), fresh)
			b, _ = h.begin()
			h.wantKinds(receive(b, "a", "b", "a"), fresh, fresh, already(store.Waiting))
			h.commit(b, store.Ending{})
			rows := h.list(store.RowFilter{Bodies: true})
			if len(rows) != 2 || rows[0].State != store.StateReceived || string(rows[0].Message.Body)+string(rows[1].Message.Body) != "ab" && string(rows[0].Message.Body)+string(rows[1].Message.Body) != "ba" {
				t.Errorf("%+v", rows)
			}
			h.wantOutcome("a", store.Waiting)
			b, _ = h.begin()
			h.wantKinds(receive(b, "a"), already(store.Waiting))
			h.commit(b, store.Ending{})
			got, err := h.leases().Claim(t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 10, Lease: long})
			t.must(err)
			if len(got) != 2 {
				t.Errorf("claimed %+v", got)
			}
		})
	t.Run("trap_83_messages_that_are_received_together_come_back_byte_for_byte",
		"Each row has its own message, identity and fingerprint, whatever else was received in the same call.", s.testReceivedTogether)
}

// testReceivedTogether stores messages of every kind with one call. What the store writes for one message must not
// depend on the other messages.
func (s suite[Tx]) testReceivedTogether(t *T) {
	h := s.open(t)
	in := []*semel.Message{{}, anyBytes(), {Key: []byte{}, Body: []byte{}}, {Topic: `"quoted", {\}`, Body: []byte("NULL")}, anyBytes()}
	marks := make([]store.Mark, len(in))
	for i, id := range []string{"a", "\x00\xff", `"{,}\\`, "NULL", strings.Repeat("long", 1000)} {
		marks[i] = h.mark(id)
		if i%2 == 0 {
			marks[i] = h.contentMark(id, byte(i))
		}
		marks[i].As = store.Waiting
	}
	if _, ok := h.Store.(admin.Streams); ok {
		marks[1].Version = versions.Position{Stream: []byte("\x00\xff{}"), Number: 7, Start: 1}
		marks[4].Version = versions.Position{Stream: []byte("NULL"), Number: 1 << 62}
	}
	b, _ := h.begin()
	v, err := h.Store.(store.CallerTx[Tx]).ReceiveIn(t.context(), b.Tx(store.All), marks, in, reasonname.None)
	t.must(err)
	for i := range v {
		if v[i].Kind != store.Fresh {
			t.Fatalf("message %d is %v", i, v[i])
		}
	}
	h.commit(b, store.Ending{})
	rows := h.list(store.RowFilter{Bodies: true})
	if ofType := h.list(store.RowFilter{Type: "paid"}); len(rows) != len(in) || len(ofType) != 2 {
		t.Fatalf("%d rows, %d rows of the type, want %d and 2", len(rows), len(ofType), len(in))
	}
	for _, r := range rows {
		i := slices.IndexFunc(marks, func(m store.Mark) bool { return string(m.ID) == r.Key.ID })
		if i < 0 || r.Fingerprint != marks[i].Fingerprint || r.State != store.StateReceived || r.Surrogate || r.DueAt.Sub(r.ReceivedAt).Abs() > time.Second {
			t.Fatalf("message %d has the row %+v", i, r)
		}
		if at := marks[i].Version; r.Stream != string(at.Stream) || r.Version != at.Number {
			t.Errorf("message %d has version %d of %q, and was received as %d of %q", i, r.Version, r.Stream, at.Number, at.Stream)
		}
		t.wantMessage(r.Message, *in[i])
	}
}

// testCallers tests marks in a transaction of the caller.
func (s suite[Tx]) testCallers(t *T) {
	s.run(t, "trap_T11_a_duplicate_does_not_harm_earlier_work_of_its_transaction",
		"A mark in the caller's transaction returns a verdict, and the other work of the transaction commits.", func(t *T, h *fixture[Tx]) {
			h.deliver(h.mark("a"))
			b, _ := h.begin()
			t.must(h.Effect(t.context(), b.Tx(store.All), "prior"))
			v, err := h.Store.(store.CallerTx[Tx]).MarkIn(t.context(), b.Tx(store.All), h.markAll("b", "a"))
			t.must(err)
			h.wantKinds(v, fresh, already(store.Applied))
			t.must(h.Effect(t.context(), b.Tx(store.All), "b"))
			h.commit(b, store.Ending{})
			h.wantCount("prior", 1)
			h.wantKinds(h.asks(h.markAll("a", "b")...), already(store.Applied), already(store.Applied))
		})
	if s.h.Can.Leases {
		s.testReceives(t)
	}
	s.run(t, "a_mark_commits_with_the_callers_transaction",
		"A mark in a transaction that is rolled back is gone; a second mark of the same identity in one transaction is a duplicate.", func(t *T, h *fixture[Tx]) {
			b, _ := h.begin()
			for _, want := range []store.Verdict{fresh, already(store.Applied)} {
				v, err := h.Store.(store.CallerTx[Tx]).MarkIn(t.context(), b.Tx(store.All), h.markAll("a"))
				t.must(err)
				h.wantKinds(v, want)
			}
			b.Rollback(t.context())
			h.wantKinds(h.asks(h.mark("a")), fresh)
		})
}

// ids returns different identities that some store has wrongly treated as equal.
func ids() []string {
	random := rand.NewChaCha8([32]byte{79})
	all := []string{
		"a", "A", " ", "a ", " a", "a\t", "\x00", "a\x00", "a\x00b", "\xff", "\xff\xfe", "\xed\xa0\x80",
		"é", "e\u0301", "É", "ß", "ss", "ı", "i", "0", "00", "1", "01", "1.0", "null", "NULL", "''", "%", "_", `\`,
		"0190a5e2-7d0b-7c3e-8f00-0123456789ab", "0190A5E2-7D0B-7C3E-8F00-0123456789AB", "0190a5e27d0b7c3e8f000123456789ab",
		"\x01\x90\xa5\xe2\x7d\x0b\x7c\x3e\x8f\x00\x01\x23\x45\x67\x89\xab",
		"\x01\x01\x90\xa5\xe2\x7d\x0b\x7c\x3e\x8f\x00\x01\x23\x45\x67\x89\xab",
		"{0190a5e2-7d0b-7c3e-8f00-0123456789ab}", "0190a5e2-7d0b-7c3e-8f00-0123456789ag",
		"00000000-0000-0000-0000-000000000000", strings.Repeat("\x00", 16),
	}
	for _, n := range []int{255, 256, 511, 512, 513, 767, 768, 2704, 2705, 3072, semel.MaxID} {
		noise := make([]byte, n)
		_, _ = random.Read(noise)
		all = append(all, string(noise), strings.Repeat("x", n), strings.Repeat("x", n-1)+"y")
	}
	return all
}

// ids returns those identities that the tested store can store.
func (s suite[Tx]) ids() []string {
	most := s.h.Can.LongestID
	return slices.DeleteFunc(ids(), func(id string) bool { return most > 0 && len(id) > most })
}

// testIdentities tests which ids the store treats as equal.
func (s suite[Tx]) testIdentities(t *T) {
	s.run(t, "trap_78_ids_are_compared_as_bytes", "Ids that differ in any byte are different messages: case, normal form, space, NUL, notation.", s.distinct)
	s.run(t, "trap_79_ids_of_any_length_and_content_are_distinguished",
		"Ids up to the longest length are stored, even if an index cannot hold them, and differ if their last byte differs.", func(t *T, h *fixture[Tx]) {
			for _, id := range s.ids() {
				if len(id) > 200 {
					h.wantKinds(h.deliver(h.mark(id)), fresh)
					h.wantKinds(h.deliver(h.mark(id)), already(store.Applied))
				}
			}
		})
	s.run(t, "trap_88_the_time_in_an_id_has_no_influence",
		"The time in an id of version 7 has no influence, whether it is in 1970, in 10889, or ten years away from now.", func(t *T, h *fixture[Tx]) {
			for _, id := range []string{"00000000-0000-7000-8000-000000000000", "ffffffff-ffff-7fff-bfff-ffffffffffff",
				"01510b5f-a800-7000-8000-000000000001", "01d5c8a3-2c00-7000-8000-000000000001", "018f3c5e-6b00-7000-8000-000000000001"} {
				h.wantKinds(h.deliver(h.mark(id)), fresh)
				h.wantKinds(h.deliver(h.mark(id)), already(store.Applied))
			}
		})
	t.Run("trap_75_two_sources_do_not_share_ids", "The same id from two sources is two messages, also if one source is empty.", func(t *T) {
		s.apart(t, "billing", "a", 0, "billing", "b", 0)
		s.apart(t, "billing", "", 0, "billing", "b", 0)
	})
	if s.h.Can.LongestID > 0 {
		t.Run("an_id_that_the_store_cannot_hold_is_refused_before_it_is_marked", "FitIdentity returns the longest id unchanged and refuses a longer one.", s.testLongest)
	}
	if s.h.Can.OneConsumer {
		s.run(t, "a_store_of_one_consumer_refuses_others", "Scope fails for another consumer and another generation.", s.alone)
		return
	}
	s.testManyConsumers(t)
}

func (s suite[Tx]) testManyConsumers(t *T) {
	t.Run("trap_T17_two_consumers_do_not_share_ids", "The same id is fresh for each of two consumers.", func(t *T) { s.apart(t, "billing", "shop", 0, "shipping", "shop", 0) })
	t.Run("two_generations_do_not_share_ids", "In a new generation every message is fresh.", func(t *T) { s.apart(t, "billing", "shop", 0, "billing", "shop", 1) })
	t.Run("a_boundary_between_consumer_and_source_is_kept", "Consumer and source are separate, even if their names concatenate to the same text.", func(t *T) { s.apart(t, "ab", "c", 0, "a", "bc", 0) })
}

func (s suite[Tx]) testLongest(t *T) {
	fits := s.open(t).Store.Limits().FitIdentity
	if fits == nil {
		t.Fatal("store.Limits.FitIdentity is not set")
	}
	id := strings.Repeat("x", s.h.Can.LongestID)
	if fit, err := fits("shop", id); err != nil || fit != id {
		t.Errorf("the longest id is refused or changed: %v", err)
	}
	if _, err := fits("shop", id+"x"); err == nil {
		t.Error("a longer id is not refused")
	}
}

func (s suite[Tx]) alone(t *T, h *fixture[Tx]) {
	if _, err := h.Store.Scope(t.context(), "shipping", "shop", 0); err == nil {
		t.Error("another consumer is not refused")
	}
	if _, err := h.Store.Scope(t.context(), "billing", "shop", 1); err == nil && !s.h.Can.Days {
		t.Error("another generation is not refused")
	}
}

func (s suite[Tx]) distinct(t *T, h *fixture[Tx]) {
	all := s.ids()
	v := h.deliver(h.markAll(all...)...)
	for i := range all {
		if v[i].Kind != store.Fresh {
			t.Errorf("id %.40q is confused with another", all[i])
		}
	}
	for i, v := range h.asks(h.markAll(all...)...) {
		if !v.Already(store.Applied) {
			t.Errorf("id %.40q is not recognised: %s", all[i], v.Kind)
		}
	}
}

func (s suite[Tx]) apart(t *T, c1, s1 string, g1 int64, c2, s2 string, g2 int64) {
	h := s.open(t)
	one, two := h.scopeOf(c1, s1, g1), h.scopeOf(c2, s2, g2)
	if one == two {
		t.Fatal(fmt.Sprint(c1, s1, g1, " and ", c2, s2, g2, " have one scope"))
	}
	m, n := h.mark("a"), h.mark("a")
	m.Scope, n.Scope = one, two
	h.wantKinds(h.deliver(m, n), fresh, fresh)
	h.wantCount("a", 2)
	h.wantKinds(h.asks(m, n), already(store.Applied), already(store.Applied))
}
