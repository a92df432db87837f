package storetest

import (
	"slices"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

// LeaseHarness describes the store of claims to be tested. The store may have transactions or not.
type LeaseHarness struct {
	// Open returns an empty store, and registers a function with t.Cleanup that closes the store.
	Open func(t testing.TB) LeaseInstance
}

// LeaseInstance is an open store of claims.
type LeaseInstance struct {
	Store store.Leases
	// Put adds a row of the consumer "billing" and returns the row's number. The parameter after is the duration after
	// which the row can be claimed. The parameter size is the size of the message's body in bytes.
	Put func(t testing.TB, id string, after time.Duration, size int) int64
	// Row returns the row with the given number.
	Row func(t testing.TB, number int64) store.StoredRow
}

// Leases runs every case about claims as a subtest of t.
func Leases(t *testing.T, h LeaseHarness) { runCases(t, nil, func(t *T) { leases(t, h) }) }

// CheckLeases runs every case about claims, and returns the failures, without failing t.
func CheckLeases(t testing.TB, h LeaseHarness) []Failure {
	return collectFailures(t, func(t *T) { leases(t, h) })
}

// claimFixture is an open store of claims that is being tested.
type claimFixture struct {
	t *T
	LeaseInstance
}

func (h *claimFixture) put(id string) int64 { return h.Put(h.t, id, 0, 10) }

// The constant long is a lease that does not expire during a case; brief is a lease that expires almost at once.
const (
	long  = time.Hour
	brief = time.Millisecond
)

// claimUpTo claims at most the given number of rows that can be claimed now.
func (h *claimFixture) claimUpTo(most int, lease time.Duration) []store.Claimed {
	h.t.Helper()
	o := store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: most, Lease: lease}
	got, err := h.Store.Claim(h.t.context(), o)
	h.t.must(err)
	for _, c := range got {
		if c.Token != o.Token || c.Row.Number != c.Number || c.Row.State != store.StateInProgress || c.Left <= 0 || c.Left > lease {
			h.t.Errorf("claimed with %+v: %+v", o, c)
		}
	}
	return got
}

// claimOne claims the only row that can be claimed now.
func (h *claimFixture) claimOne(lease time.Duration) store.Claimed {
	h.t.Helper()
	got := h.claimUpTo(10, lease)
	if len(got) != 1 {
		h.t.Fatalf("%d rows are claimed, want 1", len(got))
	}
	return got[0]
}

// reclaim waits until the brief lease of a row has expired, and then claims the row again.
func (h *claimFixture) reclaim(number int64) store.Claimed {
	h.t.Helper()
	for ctx := h.t.context(); ctx.Err() == nil; time.Sleep(brief) {
		for _, c := range h.claimUpTo(10, long) {
			if c.Number == number {
				return c
			}
		}
	}
	h.t.Fatalf("row %d cannot be claimed again", number)
	return store.Claimed{}
}

func (h *claimFixture) end(e store.ClaimEnding) (stood bool) {
	h.t.Helper()
	lost, err := h.Store.End(h.t.context(), []store.ClaimEnding{e})
	h.t.must(err)
	return len(lost) == 0
}

func (h *claimFixture) wantState(number int64, want store.RowState) store.StoredRow {
	h.t.Helper()
	r := h.Row(h.t, number)
	if r.State != want {
		h.t.Errorf("row %d is %s, want %s", number, r.State, want)
	}
	return r
}

func leases(t *T, h LeaseHarness) {
	run := func(name, law string, f func(h *claimFixture)) {
		t.Run(name, law, func(t *T) { f(&claimFixture{t, h.Open(t)}) })
	}
	claimCases(run)
	fenceCases(run)
	endCases(run)
	doubtCases(run)
}

type runCase = func(name, law string, f func(h *claimFixture))

// claimCases tests which rows the store gives to a call of Claim.
func claimCases(run runCase) {
	run("D3_a_due_row_is_claimed_once", "A due row is claimed by one call, with its message, and by no other call while its lease lasts.", func(h *claimFixture) {
		n := h.put("a")
		c := h.claimOne(long)
		if c.Number != n || c.Suspect || c.Row.Key.ID != "a" || c.Row.Key.Consumer != "billing" || len(c.Row.Message.Body) != 10 {
			h.t.Errorf("claimed %+v with %+v", c, c.Row.Message)
		}
		if again := h.claimUpTo(10, long); len(again) != 0 {
			h.t.Errorf("claimed again: %+v", again)
		}
		if r := h.wantState(n, store.StateInProgress); r.LockedUntil.IsZero() {
			h.t.Errorf("%+v", r)
		}
	})
	run("D3_a_row_that_is_not_due_is_not_claimed", "A row is not claimed before it is due, nor by another consumer.", func(h *claimFixture) {
		h.Put(h.t, "later", time.Hour, 10)
		n := h.put("now")
		got, err := h.Store.Claim(h.t.context(), store.ClaimOptions{Consumer: "shipping", Token: store.NewToken(), Most: 10, Lease: long})
		if err != nil || len(got) != 0 {
			h.t.Errorf("another consumer claims %+v, %v", got, err)
		}
		if c := h.claimOne(long); c.Number != n {
			h.t.Errorf("claimed %+v", c)
		}
	})
	run("D3_trap_124_a_call_claims_no_more_than_it_asks_for", "Most limits the rows and Bytes their bodies, but one row is claimed whatever its size; rows that are due longest come first.", func(h *claimFixture) {
		var want []int64
		for range 5 {
			want = append(want, h.Put(h.t, string(rune('a'+len(want))), 0, 1000))
		}
		var got []int64
		for _, c := range h.claimUpTo(2, long) {
			got = append(got, c.Number)
		}
		for _, bytes := range []int64{1, 2500} {
			some, err := h.Store.Claim(h.t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 9, Bytes: bytes, Lease: long})
			h.t.must(err)
			if want := map[int64]int{1: 1, 2500: 2}[bytes]; len(some) != want {
				h.t.Errorf("%d rows are claimed with %d bytes, want %d", len(some), bytes, want)
			}
			for _, c := range some {
				got = append(got, c.Number)
			}
		}
		if !slices.Equal(got, want) {
			h.t.Errorf("claimed in the order %v, want %v", got, want)
		}
	})
	run("D3_a_call_that_names_rows_claims_no_others", "A call that names rows claims only those of them that are due.", func(h *claimFixture) {
		h.put("a")
		b, c := h.put("b"), h.Put(h.t, "c", time.Hour, 10)
		got, err := h.Store.Claim(h.t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Numbers: []int64{c, b, 1 << 40}, Most: 10, Lease: long})
		if err != nil || len(got) != 1 || got[0].Number != b {
			h.t.Errorf("claimed %+v, %v, want row %d", got, err, b)
		}
	})
	run("D3_law_11_a_lease_that_has_ended_frees_its_row", "A claim ends with its lease; the next claim of the row reports that the row is suspect.", func(h *claimFixture) {
		n := h.put("a")
		first := h.claimOne(brief)
		second := h.reclaim(n)
		if !second.Suspect || second.Token == first.Token {
			h.t.Errorf("claimed anew: %+v after %+v", second, first)
		}
	})
	run("trap_T9_trap_T52_trap_T8_concurrent_claims_claim_each_row_once", "Concurrent calls never claim the same row, and together they claim all rows.", func(h *claimFixture) {
		const rows, callers = 40, 8
		for i := range rows {
			h.put("m" + string(rune('0'+i/10)) + string(rune('0'+i%10)))
		}
		got := make([][]store.Claimed, callers)
		runConcurrently(callers, func(i int) {
			for {
				some, err := h.Store.Claim(h.t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 3, Lease: long})
				if err != nil || len(some) == 0 {
					return
				}
				got[i] = append(got[i], some...)
			}
		})
		seen := map[int64]int{}
		for _, all := range got {
			for _, c := range all {
				seen[c.Number]++
			}
		}
		for _, c := range h.claimUpTo(rows, long) { // rows that were skipped because another call had locked them
			seen[c.Number]++
		}
		for n, times := range seen {
			if times != 1 {
				h.t.Errorf("row %d is claimed %d times", n, times)
			}
		}
		if len(seen) != rows {
			h.t.Errorf("%d rows are claimed, want %d", len(seen), rows)
		}
	})
}

// endings contains the states in which a claim can leave its row.
var endings = []store.RowState{store.StateCompleted, store.StateFailedRetryable, store.StateParked, store.StateDeadLettered, store.StateDiscarded,
	store.StateReceived}

// fenceCases tests that the store checks a claim's token.
func fenceCases(run runCase) {
	for _, state := range endings {
		run("law_5_a_stale_token_does_not_end_a_claim/"+state.String(), "An ending under a stale token changes nothing.", func(h *claimFixture) {
			n := h.put("a")
			stale := h.claimOne(brief)
			heir := h.reclaim(n)
			before := h.Row(h.t, n)
			for _, token := range []store.Token{stale.Token, 0, heir.Token + 1} {
				if h.end(store.ClaimEnding{Claim: store.Claim{Number: n, Token: token}, State: state, Ran: true, Error: "late"}) {
					h.t.Errorf("%s under another token is accepted", state)
				}
			}
			if after := h.Row(h.t, n); after.Revision != before.Revision || after.State != before.State || after.Attempts != before.Attempts || after.LastError != before.LastError {
				h.t.Errorf("the row is %+v, and was %+v", after, before)
			}
			if !h.end(store.ClaimEnding{Claim: heir.Claim, State: state}) {
				h.t.Error("the claim of the new holder is lost")
			}
		})
	}
	run("law_5_a_stale_token_extends_and_starts_nothing", "Neither an extension nor a start is written under a stale token.", func(h *claimFixture) {
		n := h.put("a")
		stale := h.claimOne(brief)
		heir := h.reclaim(n)
		for what, do := range map[string]func([]store.Claim) ([]int, error){
			"extended": func(c []store.Claim) ([]int, error) { return h.Store.Extend(h.t.context(), c, 9*long) },
			"started":  func(c []store.Claim) ([]int, error) { return h.Store.Start(h.t.context(), c) },
		} {
			lost, err := do([]store.Claim{heir.Claim, stale.Claim, {Number: n}})
			if err != nil || !slices.Equal(lost, []int{1, 2}) {
				h.t.Errorf("%s: lost %v, %v, want the stale claim and the claim without a token", what, lost, err)
			}
		}
		if r := h.Row(h.t, n); r.Started != 2 { // one start of the new claim, and one because the handler of the first claim may have started
			h.t.Errorf("%d starts are recorded, want 2", r.Started)
		}
	})
	run("law_6_an_extension_moves_the_end_and_never_back", "An extension moves the end of a lease later by the store's clock, and never earlier.", func(h *claimFixture) {
		n := h.put("a")
		c := h.claimOne(long)
		first := h.Row(h.t, n).LockedUntil
		for lease, later := range map[time.Duration]bool{2 * long: true, brief: false} {
			before := h.Row(h.t, n).LockedUntil
			lost, err := h.Store.Extend(h.t.context(), []store.Claim{c.Claim}, lease)
			if err != nil || len(lost) != 0 {
				h.t.Errorf("lost %v, %v", lost, err)
			}
			if now := h.Row(h.t, n).LockedUntil; now.Before(before) || later && !now.After(first) {
				h.t.Errorf("extended by %v the lease ends at %v, before at %v", lease, now, before)
			}
		}
	})
}

// doubtCases tests lost responses of the store.
func doubtCases(run runCase) {
	run("D3_a_claim_whose_answer_was_lost_is_found_by_its_token", "The rows that a token holds can be queried by the token, and are not claimed a second time.", func(h *claimFixture) {
		n := h.put("a")
		c := h.claimOne(long)
		for token, want := range map[store.Token]int{c.Token: 1, c.Token + 1: 0} {
			held, err := h.Store.Held(h.t.context(), "billing", token)
			if err != nil || len(held) != want {
				h.t.Fatalf("%v holds %+v, %v", token, held, err)
			}
			if want == 1 && (held[0].Number != n || held[0].Left <= 0 || held[0].Left > long || len(held[0].Row.Message.Body) != 10) {
				h.t.Errorf("%+v", held[0])
			}
		}
	})
	run("law_5_a_row_is_retaken_under_the_tokens_of_its_owner_only", "A retake changes the token of a row that one of the caller's tokens holds, and returns the state of any other row.", func(h *claimFixture) {
		mine, ended, others := h.put("a"), h.put("b"), h.put("c")
		all := h.claimUpTo(3, long)
		if len(all) != 3 {
			h.t.Fatalf("claimed %+v", all)
		}
		if !h.end(store.ClaimEnding{Claim: all[1].Claim, State: store.StateCompleted}) {
			h.t.Fatal("the claim is lost")
		}
		other := store.NewToken()
		if _, err := h.Store.Reclaim(h.t.context(), []int64{others}, []store.Token{all[2].Token}, other); err != nil {
			h.t.Fatal(err)
		}
		next := store.NewToken()
		got, err := h.Store.Reclaim(h.t.context(), []int64{mine, ended, others}, []store.Token{all[0].Token, all[0].Token + 1}, next)
		want := []store.Reclaimed{{Taken: true, State: store.StateInProgress}, {State: store.StateCompleted}, {State: store.StateInProgress}}
		if err != nil || !slices.Equal(got, want) {
			h.t.Errorf("%+v, %v, want %+v", got, err, want)
		}
		if h.end(store.ClaimEnding{Claim: all[0].Claim, State: store.StateCompleted}) {
			h.t.Error("the previous token ends the claim")
		}
		if !h.end(store.ClaimEnding{Claim: store.Claim{Number: mine, Token: next}, State: store.StateCompleted}) {
			h.t.Error("the new token does not end the claim")
		}
		if !h.end(store.ClaimEnding{Claim: store.Claim{Number: others, Token: other}, State: store.StateCompleted}) {
			h.t.Error("the claim of another worker is lost")
		}
	})
}
