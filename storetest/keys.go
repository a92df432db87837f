package storetest

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/store"
)

// KeyHarness describes the store of leased keys to be tested.
type KeyHarness struct {
	// Open returns an empty store, and registers a function with t.Cleanup that closes the store.
	Open func(t testing.TB) KeyInstance
}

// KeyInstance is an open store of leased keys.
type KeyInstance struct {
	Store keystore.Store
	// Pass advances the store's clock by the duration d.
	Pass func(t testing.TB, d time.Duration)
}

// RealTime implements KeyInstance.Pass for a server that uses its machine's clock: RealTime sleeps for d.
func RealTime(_ testing.TB, d time.Duration) { time.Sleep(d) }

// Keys runs every case about leased keys as a subtest of t.
func Keys(t *testing.T, h KeyHarness) { runCases(t, nil, func(t *T) { leasedKeys(t, h) }) }

// CheckKeys runs every case about leased keys, and returns the failures, without failing t.
func CheckKeys(t testing.TB, h KeyHarness) []Failure {
	return collectFailures(t, func(t *T) { leasedKeys(t, h) })
}

// keyFixture is an open store of leased keys that is being tested.
type keyFixture struct {
	t *T
	KeyInstance
}

// keyLease is the duration of the leases in the cases, long enough for a few statements on a busy machine. keyKeep is
// how long the store keeps keys.
const (
	keyLease = 500 * time.Millisecond
	keyKeep  = time.Hour
)

func keyOf(id string) semel.Key { return semel.Key{Consumer: "billing", Source: "shop", ID: id} }

// claim claims a key, and returns the token of the claim with the store's answer.
func (h *keyFixture) claim(id string) (store.Token, keystore.Answer) {
	h.t.Helper()
	c := keystore.Claim{Key: keyOf(id), Token: store.NewToken(), Lease: keyLease, Keep: keyKeep}
	return c.Token, h.ask(c)
}

func (h *keyFixture) ask(c keystore.Claim) keystore.Answer {
	h.t.Helper()
	a, err := h.Store.ClaimKey(h.t.context(), c)
	h.t.must(err)
	return a
}

// want claims a key and checks the state of the key in the answer.
func (h *keyFixture) want(id string, want keystore.State) (store.Token, keystore.Answer) {
	h.t.Helper()
	t, a := h.claim(id)
	if a.State != want {
		h.t.Fatalf("a claim of %.20q is %v, want %v: %+v", id, a.State, want, a)
	}
	return t, a
}

func (h *keyFixture) end(id string, t store.Token, e keystore.Event, result string) error {
	h.t.Helper()
	ending := keystore.Ending{Event: e, Keep: keyKeep}
	if result != "" {
		ending.Result = []byte(result)
	}
	err := h.Store.EndKey(h.t.context(), keyOf(id), t, ending)
	if err != nil && !errors.Is(err, store.ErrClaimLost) {
		h.t.Fatalf("%v: %v", e, err)
	}
	return err
}

// counts checks how many claims of the key began, how many ended, and whether an outcome is unknown.
func (h *keyFixture) counts(a keystore.Answer, started, finished int, unknown bool) {
	h.t.Helper()
	if a.Started != started || a.Finished != finished || a.Unknown() != unknown {
		h.t.Errorf("%d claims began and %d ended, unknown %t; want %d, %d, %t", a.Started, a.Finished, a.Unknown(), started, finished, unknown)
	}
}

func leasedKeys(t *T, h KeyHarness) {
	run := func(name, law string, f func(h *keyFixture)) {
		t.Run(name, law, func(t *T) { f(&keyFixture{t, h.Open(t)}) })
	}
	keyStages(run)
	keyTimes(run)
	keyFences(run)
	keyDoubts(run)
	keyContents(run)
	keyNotes(run)
}

type runKeyCase = func(name, law string, f func(h *keyFixture))

func keyStages(run runKeyCase) {
	run("B11_a_held_key_is_refused_with_the_remaining_time", "While a lease lasts, another claim is answered with held, which is not a duplicate, and with the remaining time.", func(h *keyFixture) {
		_, a := h.want("a", keystore.Claimed)
		h.counts(a, 1, 0, false)
		if a.Left <= 0 || a.Left > keyLease {
			h.t.Errorf("the lease has %v left", a.Left)
		}
		if _, b := h.want("a", keystore.Held); b.Left <= 0 || b.Left > keyLease {
			h.t.Errorf("the holder's lease has %v left", b.Left)
		}
		h.want("b", keystore.Claimed)
	})
	run("B11_a_completed_key_keeps_its_result", "Every later claim of a completed key returns its result.", func(h *keyFixture) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.end("a", token, keystore.Complete, "charge 1\x00"))
		h.Pass(h.t, 2*keyLease)
		if _, a := h.want("a", keystore.Completed); string(a.Result) != "charge 1\x00" {
			h.t.Errorf("the result is %q", a.Result)
		}
	})
	run("B11_a_failed_key_stays_failed", "A failed key is not completed, and no further call is made.", func(h *keyFixture) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.end("a", token, keystore.Fail, "refused"))
		if _, a := h.want("a", keystore.Failed); string(a.Result) != "refused" {
			h.t.Errorf("the result is %q", a.Result)
		}
	})
	run("B11_a_released_key_can_be_claimed_at_once", "A released key can be claimed before its lease ends; the attempt is counted, and no outcome is unknown.", func(h *keyFixture) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.end("a", token, keystore.Release, ""))
		_, a := h.want("a", keystore.Claimed)
		h.counts(a, 2, 1, false)
	})
	run("C2_of_concurrent_claims_one_is_granted", "Of concurrent claims exactly one is granted.", func(h *keyFixture) {
		var mutex sync.Mutex
		var all sync.WaitGroup
		got := map[keystore.State]int{}
		for range 16 {
			all.Go(func() {
				a, err := h.Store.ClaimKey(h.t.context(), keystore.Claim{Key: keyOf("a"), Token: store.NewToken(), Lease: keyKeep, Keep: keyKeep})
				mutex.Lock()
				defer mutex.Unlock()
				if got[a.State]++; err != nil {
					h.t.Error(err)
				}
			})
		}
		all.Wait()
		if got[keystore.Claimed] != 1 || got[keystore.Held] != 15 {
			h.t.Errorf("of 16: %v", got)
		}
	})
}

// keyTimes tests how long the store keeps keys.
func keyTimes(run runKeyCase) {
	run("H3_a_key_is_kept_for_its_time", "A key exists until its time ends; then the store forgets it completely.", func(h *keyFixture) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.Store.EndKey(h.t.context(), keyOf("a"), token, keystore.Ending{Event: keystore.Complete, Keep: keyLease}))
		h.want("a", keystore.Completed)
		h.Pass(h.t, 2*keyLease)
		_, a := h.want("a", keystore.Claimed)
		h.counts(a, 1, 0, false)
	})
	run("law_11_a_key_whose_claim_never_ends_is_removed", "A key whose claim never ended is removed when its time ends.", func(h *keyFixture) {
		h.ask(keystore.Claim{Key: keyOf("a"), Token: store.NewToken(), Lease: keyLease, Keep: keyLease})
		h.Pass(h.t, 2*keyLease)
		_, a := h.want("a", keystore.Claimed)
		h.counts(a, 1, 0, false)
	})
	run("D3_an_extended_key_is_kept_for_its_lease", "A key is kept at least until its extended lease ends.", func(h *keyFixture) {
		c := keystore.Claim{Key: keyOf("a"), Token: store.NewToken(), Lease: keyLease, Keep: keyLease}
		h.ask(c)
		h.t.must(h.Store.ExtendKey(h.t.context(), keyOf("a"), c.Token, 10*keyLease))
		h.Pass(h.t, 2*keyLease)
		h.want("a", keystore.Held)
	})
}

// keyFences tests that a claim's token is checked.
func keyFences(run runKeyCase) {
	run("law_5_a_stale_token_changes_nothing", "After another worker has claimed the key, the previous holder can neither extend nor end it.", func(h *keyFixture) {
		stale, _ := h.want("a", keystore.Claimed)
		h.Pass(h.t, 2*keyLease)
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.Store.ExtendKey(h.t.context(), keyOf("a"), token, 10*keyLease)) // the attempts with all endings may take as long as a lease
		for _, e := range []keystore.Event{keystore.Complete, keystore.Fail, keystore.Release, keystore.Abandon} {
			if err := h.end("a", stale, e, ""); err == nil {
				h.t.Errorf("a stale token could %v", e)
			}
		}
		h.t.wantErr("an extension under a stale token", h.Store.ExtendKey(h.t.context(), keyOf("a"), stale, keyKeep), store.ErrClaimLost)
		h.want("a", keystore.Held)
		h.t.must(h.end("a", token, keystore.Complete, "mine"))
		if err := h.end("a", stale, keystore.Complete, "theirs"); err == nil {
			h.t.Error("a stale token completed a completed key")
		}
		if _, a := h.want("a", keystore.Completed); string(a.Result) != "mine" {
			h.t.Errorf("the result is %q", a.Result)
		}
	})
	run("law_5_an_ended_claim_does_not_end_differently", "An ended claim can be neither extended nor ended differently; the same end again succeeds.", func(h *keyFixture) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.end("a", token, keystore.Complete, "x"))
		h.t.must(h.end("a", token, keystore.Complete, "x"))
		if err := h.end("a", token, keystore.Release, ""); err == nil {
			h.t.Error("a completed key was released")
		}
		h.t.wantErr("an extension of a completed key", h.Store.ExtendKey(h.t.context(), keyOf("a"), token, keyKeep), store.ErrClaimLost)
		h.want("a", keystore.Completed)
	})
	run("law_5_a_missing_key_is_not_ended", "A key that was never claimed, or was removed, cannot be ended.", func(h *keyFixture) {
		if err := h.end("a", store.NewToken(), keystore.Complete, ""); err == nil {
			h.t.Error("it is ended")
		}
		h.t.wantErr("it is extended", h.Store.ExtendKey(h.t.context(), keyOf("a"), store.NewToken(), keyLease), store.ErrClaimLost)
		h.want("a", keystore.Claimed)
	})
	run("D3_an_extended_lease_lasts", "An extended lease excludes other claims past its original end.", func(h *keyFixture) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.Store.ExtendKey(h.t.context(), keyOf("a"), token, 10*keyLease))
		h.Pass(h.t, 2*keyLease)
		h.want("a", keystore.Held)
		h.t.must(h.end("a", token, keystore.Complete, ""))
	})
	run("D3_a_late_claim_ends_if_nobody_else_claimed", "A claim whose lease has ended can still end if no other worker has claimed the key.", func(h *keyFixture) {
		token, _ := h.want("a", keystore.Claimed)
		h.Pass(h.t, 2*keyLease)
		h.t.must(h.end("a", token, keystore.Complete, "late"))
		h.want("a", keystore.Completed)
	})
}

// keyDoubts tests lost responses of the store, and unknown outcomes.
func keyDoubts(run runKeyCase) {
	run("trap_119_a_lease_that_ended_leaves_an_unknown_outcome", "A claim after a lease that expired learns that the outcome is unknown, and since when.", func(h *keyFixture) {
		h.want("a", keystore.Claimed)
		h.Pass(h.t, 2*keyLease)
		token, a := h.want("a", keystore.Claimed)
		h.counts(a, 2, 0, true)
		if a.Since < 2*keyLease || a.Since > time.Minute {
			h.t.Errorf("the first claim was %v ago", a.Since)
		}
		h.t.must(h.end("a", token, keystore.Release, ""))
		_, a = h.want("a", keystore.Claimed)
		h.counts(a, 3, 1, true)
	})
	run("trap_119_an_extended_lease_leaves_an_unknown_outcome", "An extension does not shorten the time for which the key is kept: after the lease the attempt is still recorded.", func(h *keyFixture) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.Store.ExtendKey(h.t.context(), keyOf("a"), token, keyLease))
		h.Pass(h.t, keyLease+keyLease/2)
		_, a := h.want("a", keystore.Claimed)
		h.counts(a, 2, 0, true)
	})
	run("trap_T76_an_abandoned_claim_leaves_an_unknown_outcome", "An abandoned call leaves an unknown outcome at once.", func(h *keyFixture) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.end("a", token, keystore.Abandon, ""))
		_, a := h.want("a", keystore.Claimed)
		h.counts(a, 2, 0, true)
	})
	run("E3_a_forgotten_key_starts_afresh", "Forgetting a key under its token removes it completely; a stale token forgets nothing.", func(h *keyFixture) {
		stale, _ := h.want("a", keystore.Claimed)
		h.Pass(h.t, 2*keyLease)
		token, _ := h.want("a", keystore.Claimed)
		if err := h.end("a", stale, keystore.Forget, ""); err == nil {
			h.t.Error("a stale token forgets a key")
		}
		h.t.must(h.end("a", token, keystore.Forget, ""))
		_, a := h.want("a", keystore.Claimed)
		h.counts(a, 1, 0, false)
	})
	run("trap_120_a_claim_whose_answer_was_lost_counts_once", "A claim repeated with the same token is granted and counts as one attempt.", func(h *keyFixture) {
		c := keystore.Claim{Key: keyOf("a"), Token: store.NewToken(), Lease: keyLease, Keep: keyKeep}
		h.ask(c)
		a := h.ask(c)
		if a.State != keystore.Claimed {
			h.t.Errorf("a repeated claim is %v", a.State)
		}
		h.counts(a, 1, 0, false)
		h.t.must(h.end("a", c.Token, keystore.Release, ""))
		if a := h.ask(c); a.State != keystore.Held {
			h.t.Errorf("a claim that arrives after its release is %v", a.State)
		}
		h.want("a", keystore.Claimed)
	})
}

// keyContents tests claims of a key with different contents, and results with different contents.
func keyContents(run runKeyCase) {
	run("law_10_other_content_is_a_conflict", "A claim with another fingerprint is a conflict, whether the key is held or has ended.", func(h *keyFixture) {
		c := keystore.Claim{Key: keyOf("a"), Token: store.NewToken(), Lease: keyLease, Keep: keyKeep, Fingerprint: semel.Fingerprint{Version: 1, Sum: [16]byte{1}}}
		h.ask(c)
		other := c
		other.Token, other.Fingerprint.Sum[15] = store.NewToken(), 9
		for _, when := range []string{"under way", "ended"} {
			if a := h.ask(other); a.State != keystore.Conflict || len(a.Result) > 0 {
				h.t.Errorf("%s it is %v, with the result %q", when, a.State, a.Result)
			}
			h.t.must(h.end("a", c.Token, keystore.Complete, "of the other content"))
		}
		other.Fingerprint.Version = 2
		if a := h.ask(other); a.State != keystore.Completed {
			h.t.Errorf("a fingerprint of another version, which cannot be compared, is %v", a.State)
		}
	})
	run("A1_keys_of_different_names_are_separate", "Keys of different consumers and sources are separate, even if their names concatenate to the same text.", func(h *keyFixture) {
		for _, key := range []semel.Key{
			{Consumer: "a", Source: "b", ID: "c"}, {Consumer: "a", Source: "", ID: "c"}, {Consumer: "a:b", Source: "", ID: "c"}, {Consumer: "a", Source: "b:c", ID: "c"},
			{Consumer: "a", Source: "b", ID: "c:c"}, {Consumer: "a", Source: "b", ID: "C"}, {Consumer: "a", Source: "b", ID: "%63"}, {Consumer: "a", Source: "b", ID: "c\x00"},
			{Consumer: "a", Source: "b", ID: "{c}"}, {Consumer: "a", Source: "b", ID: "\xff"}, {Consumer: "a", Source: "b", ID: strings.Repeat("c", semel.MaxID)},
			{Consumer: "a", Source: "b", ID: strings.Repeat("c", semel.MaxID-1) + "d"},
		} {
			a := h.ask(keystore.Claim{Key: key, Token: store.NewToken(), Lease: keyLease, Keep: keyKeep})
			if a.State != keystore.Claimed {
				h.t.Errorf("%.60q is %v", key, a.State)
			}
		}
	})
	run("C12_a_result_of_any_bytes_up_to_its_bound", "A result of 64 KiB comes back byte for byte; a longer result is refused and changes nothing.", func(h *keyFixture) {
		token, _ := h.want("a", keystore.Claimed)
		result := bytes.Repeat([]byte{0, 0xff, '\r', '\n'}, keystore.MaxResult/4)
		err := h.Store.EndKey(h.t.context(), keyOf("a"), token, keystore.Ending{Event: keystore.Complete, Keep: keyKeep, Result: append(result, 0)})
		if err == nil {
			h.t.Error("a result that is too long is kept")
		}
		h.want("a", keystore.Held)
		h.t.must(h.end("a", token, keystore.Complete, string(result)))
		if _, a := h.want("a", keystore.Completed); !bytes.Equal(a.Result, result) {
			h.t.Errorf("of %d bytes %d come back", len(result), len(a.Result))
		}
	})
	run("A6_an_incomplete_claim_is_refused", "A claim without consumer, id, token or lease is refused.", func(h *keyFixture) {
		good := keystore.Claim{Key: keyOf("a"), Token: store.NewToken(), Lease: keyLease, Keep: keyKeep}
		for name, spoil := range map[string]func(*keystore.Claim){
			"consumer": func(c *keystore.Claim) { c.Key.Consumer = "" }, "id": func(c *keystore.Claim) { c.Key.ID = "" },
			"token": func(c *keystore.Claim) { c.Token = 0 }, "lease": func(c *keystore.Claim) { c.Lease = 0 },
			"keep": func(c *keystore.Claim) { c.Keep = c.Lease - 1 }, "length": func(c *keystore.Claim) { c.Key.ID = strings.Repeat("x", semel.MaxID+1) },
			"number of claims": func(c *keystore.Claim) { c.Seen = -1 },
		} {
			c := good
			spoil(&c)
			if _, err := h.Store.ClaimKey(h.t.context(), c); err == nil {
				h.t.Errorf("a claim with a wrong %s is granted", name)
			}
		}
		h.want("a", keystore.Claimed)
	})
}
