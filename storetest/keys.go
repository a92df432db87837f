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

// KeyHarness opens stores of leased keys.
type KeyHarness struct {
	// Open returns an empty store, and registers its end with t.Cleanup.
	Open func(t testing.TB) KeyInstance
}

// KeyInstance is an open store of leased keys.
type KeyInstance struct {
	Store keystore.Store
	// Pass lets d pass by the store's clock.
	Pass func(t testing.TB, d time.Duration)
}

// RealTime is KeyInstance.Pass for a server that uses the clock of its machine: it waits.
func RealTime(_ testing.TB, d time.Duration) { time.Sleep(d) }

// Keys runs every case of leased keys as a subtest of t.
func Keys(t *testing.T, h KeyHarness) { cases(t, nil, func(t *T) { leasedKeys(t, h) }) }

// CheckKeys is Check for leased keys.
func CheckKeys(t testing.TB, h KeyHarness) []Failure {
	return failing(t, func(t *T) { leasedKeys(t, h) })
}

// keys is an open store under test.
type keys struct {
	t *T
	KeyInstance
}

// keyLease is the lease of the cases, long enough for a few statements on a busy machine. keyKeep is how long keys are
// kept.
const (
	keyLease = 500 * time.Millisecond
	keyKeep  = time.Hour
)

func keyOf(id string) semel.Key { return semel.Key{Consumer: "billing", Source: "shop", ID: id} }

// claim claims a key; the token is that of the claim.
func (h *keys) claim(id string) (store.Token, keystore.Answer) {
	h.t.Helper()
	c := keystore.Claim{Key: keyOf(id), Token: store.NewToken(), Lease: keyLease, Keep: keyKeep}
	return c.Token, h.ask(c)
}

func (h *keys) ask(c keystore.Claim) keystore.Answer {
	h.t.Helper()
	a, err := h.Store.ClaimKey(h.t.context(), c)
	h.t.must(err)
	return a
}

// want is a claim with this answer.
func (h *keys) want(id string, want keystore.State) (store.Token, keystore.Answer) {
	h.t.Helper()
	t, a := h.claim(id)
	if a.State != want {
		h.t.Fatalf("a claim of %.20q is %v, want %v: %+v", id, a.State, want, a)
	}
	return t, a
}

func (h *keys) end(id string, t store.Token, e keystore.Event, result string) error {
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

// counts are the claims that began, and those whose end is known.
func (h *keys) counts(a keystore.Answer, started, finished int, unknown bool) {
	h.t.Helper()
	if a.Started != started || a.Finished != finished || a.Unknown() != unknown {
		h.t.Errorf("%d claims began and %d ended, unknown %t; want %d, %d, %t", a.Started, a.Finished, a.Unknown(), started, finished, unknown)
	}
}

func leasedKeys(t *T, h KeyHarness) {
	run := func(name, law string, f func(h *keys)) {
		t.Run(name, law, func(t *T) { f(&keys{t, h.Open(t)}) })
	}
	keyStages(run)
	keyTimes(run)
	keyFences(run)
	keyDoubts(run)
	keyContents(run)
	keyNotes(run)
}

type runKeyCase = func(name, law string, f func(h *keys))

// keyStages are the stages of a key.
func keyStages(run runKeyCase) {
	run("B11_one_has_it_and_the_others_hear_for_how_long", "While a lease lasts, a claim is answered with held, which is no duplicate, and with what is left.", func(h *keys) {
		_, a := h.want("a", keystore.Claimed)
		h.counts(a, 1, 0, false)
		if a.Left <= 0 || a.Left > keyLease {
			h.t.Errorf("%v of the lease are left", a.Left)
		}
		if _, b := h.want("a", keystore.Held); b.Left <= 0 || b.Left > keyLease {
			h.t.Errorf("who has it has %v left", b.Left)
		}
		h.want("b", keystore.Claimed)
	})
	run("B11_what_is_completed_stays_with_its_result", "A completed key answers with its result from then on.", func(h *keys) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.end("a", token, keystore.Complete, "charge 1\x00"))
		h.Pass(h.t, 2*keyLease)
		if _, a := h.want("a", keystore.Completed); string(a.Result) != "charge 1\x00" {
			h.t.Errorf("the result is %q", a.Result)
		}
	})
	run("B11_what_failed_for_good_stays_so", "A failed key is no completed one, and nobody calls again.", func(h *keys) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.end("a", token, keystore.Fail, "refused"))
		if _, a := h.want("a", keystore.Failed); string(a.Result) != "refused" {
			h.t.Errorf("the result is %q", a.Result)
		}
	})
	run("B11_what_is_released_may_be_claimed_at_once", "A released key is claimable before its lease has ended, with one more attempt and nothing unknown.", func(h *keys) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.end("a", token, keystore.Release, ""))
		_, a := h.want("a", keystore.Claimed)
		h.counts(a, 2, 1, false)
	})
	run("C2_of_many_at_once_one_gets_it", "Of claims at the same time exactly one is granted.", func(h *keys) {
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

// keyTimes are the laws of how long keys are kept.
func keyTimes(run runKeyCase) {
	run("H3_a_key_is_kept_for_as_long_as_it_was_said", "A key is there until its time is over, and then it is as if it had never been.", func(h *keys) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.Store.EndKey(h.t.context(), keyOf("a"), token, keystore.Ending{Event: keystore.Complete, Keep: keyLease}))
		h.want("a", keystore.Completed)
		h.Pass(h.t, 2*keyLease)
		_, a := h.want("a", keystore.Claimed)
		h.counts(a, 1, 0, false)
	})
	run("law_11_a_claim_that_never_ends_goes_with_its_time", "A key whose claim was never ended is gone when its time is over.", func(h *keys) {
		h.ask(keystore.Claim{Key: keyOf("a"), Token: store.NewToken(), Lease: keyLease, Keep: keyLease})
		h.Pass(h.t, 2*keyLease)
		_, a := h.want("a", keystore.Claimed)
		h.counts(a, 1, 0, false)
	})
	run("D3_what_is_extended_is_kept_for_its_lease", "A lease that is extended past the time of its key keeps the key.", func(h *keys) {
		c := keystore.Claim{Key: keyOf("a"), Token: store.NewToken(), Lease: keyLease, Keep: keyLease}
		h.ask(c)
		h.t.must(h.Store.ExtendKey(h.t.context(), keyOf("a"), c.Token, 10*keyLease))
		h.Pass(h.t, 2*keyLease)
		h.want("a", keystore.Held)
	})
}

// keyFences are the laws of tokens.
func keyFences(run runKeyCase) {
	run("law_5_a_stale_token_changes_nothing", "Once another has claimed the key, who had it before can neither extend nor end it.", func(h *keys) {
		stale, _ := h.want("a", keystore.Claimed)
		h.Pass(h.t, 2*keyLease)
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.Store.ExtendKey(h.t.context(), keyOf("a"), token, 10*keyLease)) // it may take as long as a lease to try all
		for _, e := range []keystore.Event{keystore.Complete, keystore.Fail, keystore.Release, keystore.Abandon} {
			if err := h.end("a", stale, e, ""); err == nil {
				h.t.Errorf("a stale token could %v", e)
			}
		}
		h.t.wantErr("a stale token extends", h.Store.ExtendKey(h.t.context(), keyOf("a"), stale, keyKeep), store.ErrClaimLost)
		h.want("a", keystore.Held)
		h.t.must(h.end("a", token, keystore.Complete, "mine"))
		if err := h.end("a", stale, keystore.Complete, "theirs"); err == nil {
			h.t.Error("a stale token completed what is complete")
		}
		if _, a := h.want("a", keystore.Completed); string(a.Result) != "mine" {
			h.t.Errorf("the result is %q", a.Result)
		}
	})
	run("law_5_what_ended_does_not_end_otherwise", "An ended claim is neither extended nor ended in another way; the same way again succeeds.", func(h *keys) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.end("a", token, keystore.Complete, "x"))
		h.t.must(h.end("a", token, keystore.Complete, "x"))
		if err := h.end("a", token, keystore.Release, ""); err == nil {
			h.t.Error("what is complete was released")
		}
		h.t.wantErr("what is complete was extended", h.Store.ExtendKey(h.t.context(), keyOf("a"), token, keyKeep), store.ErrClaimLost)
		h.want("a", keystore.Completed)
	})
	run("law_5_nobody_ends_what_is_not_there", "A key that was never claimed, or is gone, is not ended.", func(h *keys) {
		if err := h.end("a", store.NewToken(), keystore.Complete, ""); err == nil {
			h.t.Error("it is ended")
		}
		h.t.wantErr("it is extended", h.Store.ExtendKey(h.t.context(), keyOf("a"), store.NewToken(), keyLease), store.ErrClaimLost)
		h.want("a", keystore.Claimed)
	})
	run("D3_an_extended_lease_lasts", "A lease that is extended keeps others away past its first end.", func(h *keys) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.Store.ExtendKey(h.t.context(), keyOf("a"), token, 10*keyLease))
		h.Pass(h.t, 2*keyLease)
		h.want("a", keystore.Held)
		h.t.must(h.end("a", token, keystore.Complete, ""))
	})
	run("D3_who_comes_late_and_is_alone_ends_it", "A claim whose lease has ended, and that nobody took, still ends: what it says is true.", func(h *keys) {
		token, _ := h.want("a", keystore.Claimed)
		h.Pass(h.t, 2*keyLease)
		h.t.must(h.end("a", token, keystore.Complete, "late"))
		h.want("a", keystore.Completed)
	})
}

// keyDoubts are lost answers and unknown outcomes.
func keyDoubts(run runKeyCase) {
	run("trap_119_a_lease_that_ended_leaves_an_unknown_outcome", "Who claims a key after a lease that ended by itself hears that nobody knows how that went, and since when.", func(h *keys) {
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
	run("trap_119_so_does_one_that_was_extended", "An extension does not shorten the time for which the key is kept: after its lease the attempt is still known.", func(h *keys) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.Store.ExtendKey(h.t.context(), keyOf("a"), token, keyLease))
		h.Pass(h.t, keyLease+keyLease/2)
		_, a := h.want("a", keystore.Claimed)
		h.counts(a, 2, 0, true)
	})
	run("trap_T76_an_abandoned_claim_leaves_one_too", "A call that was given up leaves an unknown outcome at once.", func(h *keys) {
		token, _ := h.want("a", keystore.Claimed)
		h.t.must(h.end("a", token, keystore.Abandon, ""))
		_, a := h.want("a", keystore.Claimed)
		h.counts(a, 2, 0, true)
	})
	run("E3_what_is_forgotten_begins_anew", "A key that is forgotten under its token is as if it had never been, and a stale token forgets nothing.", func(h *keys) {
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
	run("trap_120_a_claim_whose_answer_was_lost_counts_once", "The same token asked again has the key, and one attempt.", func(h *keys) {
		c := keystore.Claim{Key: keyOf("a"), Token: store.NewToken(), Lease: keyLease, Keep: keyKeep}
		h.ask(c)
		a := h.ask(c)
		if a.State != keystore.Claimed {
			h.t.Errorf("asked again it is %v", a.State)
		}
		h.counts(a, 1, 0, false)
		h.t.must(h.end("a", c.Token, keystore.Release, ""))
		if a := h.ask(c); a.State != keystore.Held {
			h.t.Errorf("a claim that came late, after its release, is %v", a.State)
		}
		h.want("a", keystore.Claimed)
	})
}

// keyContents are the laws of what keys and results are made of.
func keyContents(run runKeyCase) {
	run("law_10_another_content_is_a_conflict", "A key with another fingerprint is neither claimed nor a duplicate, under way and when it has ended.", func(h *keys) {
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
	run("A1_keys_do_not_meet", "Consumers and sources have keys of their own, however names are put together.", func(h *keys) {
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
	run("C12_a_result_of_any_bytes_up_to_its_bound", "A result of 64 KiB comes back byte for byte; a longer one is refused and nothing is done.", func(h *keys) {
		token, _ := h.want("a", keystore.Claimed)
		result := bytes.Repeat([]byte{0, 0xff, '\r', '\n'}, keystore.MaxResult/4)
		err := h.Store.EndKey(h.t.context(), keyOf("a"), token, keystore.Ending{Event: keystore.Complete, Keep: keyKeep, Result: append(result, 0)})
		if err == nil {
			h.t.Error("a result that is too long is kept")
		}
		h.want("a", keystore.Held)
		h.t.must(h.end("a", token, keystore.Complete, string(result)))
		if _, a := h.want("a", keystore.Completed); !bytes.Equal(a.Result, result) {
			h.t.Errorf("of %d bytes come back %d", len(result), len(a.Result))
		}
	})
	run("A6_what_does_not_fit_is_refused", "A claim without consumer, id, token or lease is refused.", func(h *keys) {
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
				h.t.Errorf("a claim with a wrong %s is made", name)
			}
		}
		h.want("a", keystore.Claimed)
	})
}
