package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/store"
)

func (h *fixture[Tx]) streams() admin.Streams { return h.Store.(admin.Streams) }

func (h *fixture[Tx]) versionMark(stream string, n int64, as store.Outcome) store.Mark {
	m := h.contentMark(stream+string(rune('0'+n)), 1)
	m.As = as
	m.Version = versions.Position{Stream: []byte(stream), Number: n, Start: 1, Asks: true}
	return m
}

// next delivers versions of a stream, each of which must be the next version of the stream.
func (h *fixture[Tx]) next(stream string, numbers ...int64) {
	h.t.Helper()
	for _, n := range numbers {
		h.wantKinds(h.deliver(h.versionMark(stream, n, store.Applied)), fresh)
	}
}

// blocks writes a row that waits for an earlier version of its stream.
func (h *fixture[Tx]) blocks(stream string, n int64, wait time.Duration) store.StoredRow {
	h.t.Helper()
	m := h.versionMark(stream, n, store.Waiting)
	b, v := h.begin(m)
	h.wantKinds(v, fresh)
	h.commit(b, store.Ending{Rows: []store.Row{{State: store.StateBlocked, Reason: semel.ReasonGap, After: wait, Message: &semel.Message{Body: []byte(m.ID)}}}})
	return h.rowOfIdentity(string(m.ID), false)
}

// storedStream returns the stored stream, or the zero value if the store does not know the stream.
func (h *fixture[Tx]) storedStream(stream string) admin.StoredStream {
	h.t.Helper()
	all, err := h.streams().Streams(h.t.context(), admin.StreamFilter{Consumer: "billing", Stream: stream})
	h.t.must(err)
	if len(all) > 1 {
		h.t.Fatalf("%d streams are named %q", len(all), stream)
	}
	if len(all) == 0 {
		return admin.StoredStream{}
	}
	return all[0]
}

func (h *fixture[Tx]) wantAt(stream string, last int64) {
	h.t.Helper()
	if got := h.storedStream(stream).Last; got != last {
		h.t.Errorf("the stream %q is at %d, want %d", stream, got, last)
	}
}

var (
	gap   = store.Verdict{Kind: store.Gap}
	stale = store.Verdict{Kind: store.Stale}
)

func (s suite[Tx]) testVersions(t *T) {
	s.testGuards(t)
	s.testTakenBack(t)
	s.testBlocked(t)
	s.testRowsOfAStream(t)
	s.testBlockedClaims(t)
	s.testTwoOfOneStream(t)
	s.testSkips(t)
	s.testGapTwins(t)
}

func (s suite[Tx]) testGuards(t *T) {
	s.run(t, "B4_first_seen_begins_with_a_fresh_version",
		"A copy of a message that was applied before streams were kept says nothing about the position of its stream.", func(t *T, h *fixture[Tx]) {
			old := h.versionMark("a", 3, store.Applied)
			old.Version = versions.Position{}
			h.wantKinds(h.deliver(old), fresh)
			seen := func(n int64) store.Mark {
				m := h.versionMark("a", n, store.Applied)
				m.Version.Start = 0
				return m
			}
			h.next("b", 1)
			b, v := h.begin(seen(3), h.versionMark("b", 2, store.Applied))
			h.wantKinds(v, already(store.Applied), fresh)
			h.commit(b, store.Ending{})
			b, v = h.begin(seen(7), seen(8), seen(6))
			h.wantKinds(v, fresh, fresh, stale)
			h.commit(b, store.Ending{Trim: []int{1, 2}})
			h.wantAt("a", 7)
			h.wantKinds(h.asks(seen(9)), gap)
		})
	t.Run("B4_trap_T53_first_seen_begins_before_a_version_that_waits_or_is_parked", "If the first version seen waits or is parked, the stream begins before it, and later versions wait for it.", func(t *T) { s.open(t).firstSeen() })
	s.run(t, "B4_the_next_version_is_fresh_a_later_one_a_gap_an_earlier_one_stale",
		"Only the commit of an effect moves a stream to its next version.", func(t *T, h *fixture[Tx]) {
			h.wantKinds(h.asks(h.versionMark("a", 2, store.Applied)), gap)
			h.next("a", 1, 2)
			h.wantAt("a", 2)
			if v := h.asks(h.versionMark("a", 5, store.Applied), h.versionMark("a", 3, store.Applied), h.versionMark("a", 6, store.Applied)); v[0] != (store.Verdict{Kind: store.Gap, Missing: 2}) || v[2].Missing != 2 {
				t.Errorf("the missing versions before 5 with the stream at 2, and before 6 after 3: %+v", v)
			}
			other := h.versionMark("a", 1, store.Applied)
			other.ID = []byte("other")
			h.wantKinds(h.asks(other), stale)
			same, differs := h.versionMark("a", 2, store.Applied), h.versionMark("a", 2, store.Applied)
			same.ID, differs.ID, differs.Fingerprint.Sum[0] = []byte("same"), []byte("differs"), 77
			if v := h.asks(same, differs); v[0] != stale || v[1] != (store.Verdict{Kind: store.Stale, Known: true}) {
				t.Errorf("the same version again: %v", v)
			}
			h.wantKinds(h.deliver(h.versionMark("a", 2, store.Applied)), already(store.Applied))
			b, _ := h.begin(h.versionMark("a", 3, store.Applied))
			b.Rollback(t.context())
			h.wantAt("a", 2)
		})
	s.run(t, "B4_versions_in_a_batch_are_judged_in_order",
		"Marks of a batch are judged in order, and streams of two scopes are separate.", func(t *T, h *fixture[Tx]) {
			marks := []store.Mark{h.versionMark("a", 1, store.Applied), h.versionMark("b", 2, store.Applied), h.versionMark("a", 3, store.Applied), h.versionMark("a", 2, store.Applied), h.versionMark("b", 1, store.Discarded)}
			b, v := h.begin(marks...)
			h.wantKinds(v, fresh, gap, gap, fresh, fresh)
			h.commit(b, store.Ending{Trim: []int{1, 2}, Rows: []store.Row{{Mark: 4, State: store.StateDiscarded, Message: &semel.Message{}}}})
			h.wantAt("a", 2)
			h.wantAt("b", 1)
			if !s.h.Can.OneConsumer {
				away := h.withScope(h.versionMark("a", 1, store.Applied), h.scopeOf("billing", "another", 0))
				h.wantKinds(h.asks(away), fresh)
			}
		})
	s.run(t, "B4_a_new_stream_begins_at_its_start",
		"A new stream begins at Start, or, without it, with the first version that arrives.", func(t *T, h *fixture[Tx]) {
			late, first := h.versionMark("late", 7, store.Applied), h.versionMark("first", 5, store.Applied)
			late.Version.Start, first.Version.Start = 7, 0
			h.wantKinds(h.deliver(late, first), fresh, fresh)
			h.wantAt("late", 7)
			h.wantAt("first", 5)
		})
}

func (s suite[Tx]) testTakenBack(t *T) {
	s.run(t, "B4_a_trimmed_mark_does_not_move_its_stream", "A trimmed or rolled back mark does not move its stream, and neither do the versions after it.", func(t *T, h *fixture[Tx]) {
		b, v := h.begin(h.versionMark("a", 1, store.Applied), h.versionMark("a", 2, store.Applied), h.versionMark("a", 3, store.Applied))
		h.wantKinds(v, fresh, fresh, fresh)
		h.commit(b, store.Ending{Trim: []int{1, 2}})
		h.wantAt("a", 1)
		h.next("a", 2, 3)
		b, _ = h.begin(h.versionMark("a", 4, store.Applied))
		b.Kill()
		b.Rollback(t.context())
		h.wantAt("a", 3)
	})
}

func (s suite[Tx]) testBlocked(t *T) {
	s.run(t, "B9_a_commit_frees_only_the_next_version",
		"A row that waits for an earlier version is due with the commit of that version, also if both are written in the same batch.", func(t *T, h *fixture[Tx]) {
			four, three := h.blocks("a", 4, long), h.blocks("a", 3, long)
			if three.State != store.StateBlocked || three.Stream != "a" || three.Version != 3 || three.DueAt.Before(three.ReceivedAt.Add(long/2)) {
				t.Errorf("the row is %+v", three)
			}
			if at := h.storedStream("a"); at.Blocked != 2 || at.First != 3 || at.Row != three.Number || !at.Oldest.Equal(four.ReceivedAt) {
				t.Errorf("the stream is %+v", at)
			}
			h.next("a", 1)
			h.wantState("the row, before its predecessor has arrived,", h.number(three.Number), store.StateBlocked)
			b, _ := h.begin(h.versionMark("a", 2, store.Applied))
			if r := b.Commit(t.context(), store.Ending{}); r.Outcome != store.Committed || !r.Freed {
				t.Errorf("Commit returned %+v", r)
			}
			if r := h.number(three.Number); r.State != store.StateReceived || r.Reason != "" || r.DueAt.After(r.ChangedAt.Add(time.Second)) || r.Revision == three.Revision {
				t.Errorf("the freed row is %+v", r)
			}
			if r := h.number(four.Number); r.State != store.StateBlocked || r.Revision != four.Revision {
				t.Errorf("the row after it is %+v", r)
			}
			b, _ = h.begin(h.versionMark("b", 1, store.Applied), h.versionMark("b", 2, store.Waiting))
			r := b.Commit(t.context(), store.Ending{Rows: []store.Row{{Mark: 1, State: store.StateBlocked, Reason: semel.ReasonGap, After: long, Message: &semel.Message{}}}})
			if row := h.rowOfIdentity("b2", false); !r.Freed || row.State != store.StateReceived || row.Reason != "" {
				t.Errorf("written with its predecessor the row is %+v, and Commit returned %+v", row, r)
			}
		})
	s.run(t, "B9_law_11_a_blocked_row_can_be_claimed_after_its_wait",
		"A blocked row whose wait has ended can be claimed, and is still freed if it was then parked for the gap.", func(t *T, h *fixture[Tx]) {
			r := h.blocks("a", 2, 0)
			got := h.takes(r.Number, long)
			if len(got) != 1 || !got[0].Blocked {
				t.Fatalf("claimed %+v", got)
			}
			m := h.versionMark("a", 2, store.Parked)
			m.Claim = got[0].Claim
			b, _ := h.begin(m)
			h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: got[0].Claim, State: store.StateParked, Reason: semel.ReasonGap}}})
			h.wantOutcome("a2", store.Parked)
			if at := h.storedStream("a"); at.Blocked != 1 || at.First != 2 {
				t.Errorf("the stream is %+v", at)
			}
			other := h.claimOf("a", 3)
			h.wantLost(h.leases().End(t.context(), []store.ClaimEnding{{Claim: other, State: store.StateParked, Reason: semel.ReasonPermanent}}))
			h.next("a", 1)
			h.wantState("the row", h.number(r.Number), store.StateReceived)
			h.wantOutcome("a2", store.Waiting)
			h.wantState("a row that was parked for another reason", h.number(other.Number), store.StateParked)
		})
}

// claimOf delivers a version that waits in the inbox, and claims its row.
func (h *fixture[Tx]) claimOf(stream string, n int64) store.Claim {
	h.t.Helper()
	m := h.versionMark(stream, n, store.Waiting)
	m.Version.Asks = false
	b, _ := h.begin(m)
	h.commit(b, store.Ending{Rows: []store.Row{{State: store.StateReceived, Message: &semel.Message{}}}})
	got := h.takes(h.rowOfIdentity(string(m.ID), false).Number, long)
	if len(got) != 1 || got[0].Blocked {
		h.t.Fatalf("claimed %+v", got)
	}
	return got[0].Claim
}

func (h *fixture[Tx]) wantLost(lost []int, err error, want ...int) {
	h.t.Helper()
	h.t.must(err)
	if !slices.Equal(lost, want) {
		h.t.Errorf("the lost claims are %v, want %v", lost, want)
	}
}

func (s suite[Tx]) testRowsOfAStream(t *T) {
	s.run(t, "B9_rows_of_a_stream_are_listed_by_version", "Rows of a stream are listed by version, then by number, within the requested versions and in pages.", func(t *T, h *fixture[Tx]) {
		for _, n := range []int64{5, 3, 2, 4} {
			h.blocks("a", n, long)
		}
		h.blocks("b", 3, long)
		twin := h.versionMark("a", 3, store.Waiting)
		twin.ID = []byte("twin")
		b, _ := h.begin(twin)
		h.commit(b, store.Ending{Rows: []store.Row{{State: store.StateBlocked, Reason: semel.ReasonGap, After: long, Message: &semel.Message{}}}})
		three := h.rowOfIdentity("a3", false).Number
		for want, f := range map[string]store.RowFilter{
			"a2 a3 twin a4 a5 ": {Stream: &versions.Rows{Source: "shop", Name: "a"}},
			"a2 a3 ":            {Stream: &versions.Rows{Source: "shop", Name: "a"}, Limit: 2},
			"twin a4 a5 ":       {Stream: &versions.Rows{Source: "shop", Name: "a", From: 3}, After: three},
			"a3 twin a4 ":       {Stream: &versions.Rows{Source: "shop", Name: "a", From: 3, To: 4}},
			"b3 ":               {Stream: &versions.Rows{Source: "shop", Name: "b"}, Consumer: "billing", States: []store.RowState{store.StateBlocked}},
			"":                  {Stream: &versions.Rows{Source: "another", Name: "a"}},
		} {
			got := ""
			for _, r := range h.list(f) {
				got += r.Key.ID + " "
			}
			if got != want {
				t.Errorf("the filter %+v of %+v chooses %q, want %q", f, f.Stream, got, want)
			}
		}
	})
}

func (s suite[Tx]) testBlockedClaims(t *T) {
	s.run(t, "B9_D8_a_claim_is_checked_against_its_stream_and_moves_it_when_completed",
		"A claimed row whose predecessor is missing is blocked again, with the version that it waits for.", func(t *T, h *fixture[Tx]) {
			first, second := h.claimOf("a", 1), h.claimOf("a", 2)
			asks := func(n int64, c store.Claim) store.Mark {
				m := h.versionMark("a", n, store.Applied)
				m.Claim = c
				return m
			}
			h.wantKinds(h.asks(asks(2, second)), gap)
			b, v := h.begin(asks(1, first), asks(2, second))
			h.wantKinds(v, fresh, fresh)
			h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: first, State: store.StateFailedRetryable, After: long}}})
			h.wantAt("a", 0)
			place := versions.Position{Stream: []byte("z"), Number: 5}
			blocked := asks(2, second)
			blocked.As = store.Waiting
			b, _ = h.begin(blocked)
			h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: second, State: store.StateBlocked, After: long, Reason: semel.ReasonGap, Version: place}}})
			if r := h.number(second.Number); r.State != store.StateBlocked || r.Stream != "z" || r.Version != 5 || r.Reason != semel.ReasonGap {
				t.Errorf("the blocked row is %+v", r)
			}
			third := h.claimOf("b", 1)
			m := h.versionMark("b", 1, store.Applied)
			m.Claim = third
			b, _ = h.begin(m)
			h.commit(b, store.Ending{Claims: []store.ClaimEnding{{Claim: third, State: store.StateCompleted, Ran: true}}})
			h.wantAt("b", 1)
		})
	s.run(t, "B9_law_11_a_claim_is_not_parked_after_its_predecessor_committed",
		"A claimed row is not parked if its predecessor has committed in the meantime; otherwise nothing would free it.", func(t *T, h *fixture[Tx]) {
			for n, reason := range []semel.Reason{semel.ReasonGap, semel.ReasonPermanent} {
				stream := string(rune('a' + n))
				c := h.claimOf(stream, 2)
				h.next(stream, 1)
				m := h.versionMark(stream, 2, store.Parked)
				m.Claim = c
				b, _ := h.begin(m)
				r := b.Commit(t.context(), store.Ending{Claims: []store.ClaimEnding{{Claim: c, State: store.StateParked, Reason: reason}}})
				if row := h.number(c.Number); (row.State == store.StateReceived) != (n == 0) || r.Freed != (n == 0) {
					t.Errorf("set aside for %q it is %+v, and the commit says %+v", reason, row, r)
				}
			}
		})
	s.run(t, "B9_trap_T56_a_claim_is_not_blocked_after_its_predecessor_committed",
		"If the predecessor commits between the lookup and the end of the claim, the row is not blocked.", func(t *T, h *fixture[Tx]) {
			c := h.claimOf("a", 2)
			h.next("a", 1)
			m := h.versionMark("a", 2, store.Waiting)
			m.Claim = c
			b, _ := h.begin(m)
			r := b.Commit(t.context(), store.Ending{Claims: []store.ClaimEnding{{Claim: c, State: store.StateBlocked, After: long, Reason: semel.ReasonGap, Version: m.Version}}})
			if row := h.number(c.Number); !r.Freed || row.State != store.StateReceived {
				t.Errorf("the row is %+v, and Commit returned %+v", row, r)
			}
		})
}

func (s suite[Tx]) testTwoOfOneStream(t *T) {
	s.run(t, "B9_law_11_a_follower_added_while_its_predecessor_commits_is_freed",
		"Only one batch at a time holds a stream: a batch that adds a follower waits for the batch that frees it.", func(t *T, h *fixture[Tx]) {
			first, _ := h.begin(h.versionMark("a", 1, store.Applied))
			added := make(chan error, 1)
			go func() {
				b, v, err := h.Store.Begin(t.context(), store.TxOptions{}, []store.Mark{h.versionMark("a", 2, store.Waiting)})
				if err == nil && v[0] != fresh {
					err = errors.New("the verdict is " + v[0].String())
				}
				if err == nil {
					r := b.Commit(t.context(), store.Ending{Rows: []store.Row{{State: store.StateBlocked, After: long, Message: &semel.Message{}}}})
					err = r.Err
				}
				added <- err
			}()
			select {
			case err := <-added:
				t.Fatalf("the second batch did not wait: %v", err)
			case <-time.After(50 * brief):
			}
			h.commit(first, store.Ending{})
			t.must(<-added)
			h.wantState("the follower", h.rowOfIdentity("a2", false), store.StateReceived)
		})
	if s.h.Can.OneWriter {
		return
	}
	s.run(t, "case_5_a_batch_waits_for_a_stream_in_flight_elsewhere",
		"After MarkLock the batch fails as contended and leaves nothing behind.", func(t *T, h *fixture[Tx]) {
			first, _ := h.begin(h.versionMark("a", 1, store.Applied))
			_, _, err := h.Store.Begin(t.context(), store.TxOptions{MarkLock: 20 * brief}, []store.Mark{h.versionMark("a", 2, store.Applied), h.mark("neighbour")})
			if err == nil || h.Store.Classify(err) != store.ClassContended {
				t.Errorf("it says %v", err)
			}
			h.commit(first, store.Ending{})
			h.wantKinds(h.deliver(h.versionMark("a", 2, store.Applied), h.mark("neighbour")), fresh, fresh)
		})
}

func (s suite[Tx]) testSkips(t *T) {
	s.run(t, "B9_G6_an_operator_skips_a_missing_version",
		"SkipTo moves a stream once, is recorded, and frees waiting rows; a call with an outdated position changes nothing.", func(t *T, h *fixture[Tx]) {
			h.next("a", 1)
			r := h.blocks("a", 4, long)
			seen := h.storedStream("a")
			t.must(h.streams().SkipTo(t.context(), seen, 3, act("skip")))
			h.wantState("what waited", h.number(r.Number), store.StateReceived)
			h.wantAt("a", 3)
			h.wantActs(r.Number, "skip done")
			h.passesParked()
			backwards := h.storedStream("a")
			for _, err := range []error{
				h.streams().SkipTo(t.context(), seen, 5, act("skip")), h.streams().SkipTo(t.context(), backwards, 3, act("skip")),
				h.streams().SkipTo(t.context(), admin.StoredStream{Consumer: "billing", Source: "shop", Name: "unknown"}, 3, act("skip")),
			} {
				if !errors.Is(err, semel.ErrChanged) {
					t.Errorf("SkipTo returned %v, want ErrChanged", err)
				}
			}
			h.wantActs(r.Number, "skip done")
			gaps, err := h.streams().Streams(context.Background(), admin.StreamFilter{Gaps: true})
			if err != nil || len(gaps) != 0 {
				t.Errorf("%+v, %v", gaps, err)
			}
		})
}
