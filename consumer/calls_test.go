package consumer_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// callsOut returns the configuration of a consumer that processes received messages with calls, one at a
// time.
func callsOut() consumer.Config {
	c := withoutSource(config(nil))
	c.AckOnReceipt, c.IdleExit, c.Workers = true, time.Hour, 1
	return c
}

// diedCalling returns a store with a message "m0". A process started a call for m0, a duration ago before
// now, and then died.
func diedCalling(t *testing.T, ago time.Duration) *memstore.Store {
	t.Helper()
	st := memstore.New()
	fillInbox(t, st, 1)
	claimed, err := st.Claim(t.Context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 1, Lease: time.Second})
	if err != nil || len(claimed) != 1 {
		t.Fatal(claimed, err)
	}
	if got, err := st.StartCalls(t.Context(), []store.Claim{claimed[0].Claim}, time.Second); err != nil || !got[0].Stands {
		t.Fatal(got, err)
	}
	pass(ago)
	return st
}

// provides is a provider that counts the calls for a message and records their keys.
type provides struct {
	calls int
	keys  map[string]bool
}

func (p *provides) call(_ context.Context, _ consumer.Call, m *semel.Message) error {
	if p.keys == nil {
		p.keys = map[string]bool{}
	}
	p.calls++
	p.keys[m.IdempotencyKey("call")] = true
	return nil
}

func TestUnknownOutcomes(t *testing.T) {
	bubble(t, "E3_trap_119_within_the_window_it_is_called_again_under_the_same_key", func(t *testing.T) {
		st, p := diedCalling(t, 23*time.Hour), provides{}
		counts := runsLeased(t, st, p.call, callsOut())
		if r := row(t, st, "m0"); p.calls != 1 || counts.Inbox.Applied != 1 || r.UnknownOutcome() || r.CallsStarted != 2 {
			t.Errorf("%d calls, %+v, %+v", p.calls, counts.Inbox, r)
		}
	})
	bubble(t, "E3_trap_T77_after_the_window_it_waits_for_a_person", func(t *testing.T) {
		st, p := diedCalling(t, 24*time.Hour-30*time.Second), provides{}
		counts := runsLeased(t, st, p.call, callsOut())
		r := row(t, st, "m0")
		if p.calls != 0 || counts.Inbox.Parked != 1 || r.Reason != semel.ReasonOutcomeUnknown || r.CallsStarted != 1 || !r.UnknownOutcome() || r.Attempts != 0 {
			t.Errorf("%d calls, %+v, %+v", p.calls, counts.Inbox, r)
		}
		if !strings.Contains(r.LastError, "is unknown: the first call was made 23h59m") {
			t.Errorf("it says %q", r.LastError)
		}
	})
	for resolution, want := range map[admin.Resolution]int{admin.ResolvedDone: 0, admin.ResolvedNotDone: 1} {
		bubble(t, "E3_what_a_person_says_of_it_decides/"+resolution.String(), func(t *testing.T) {
			st, p := diedCalling(t, 25*time.Hour), provides{}
			runsLeased(t, st, p.call, callsOut())
			r, act := row(t, st, "m0"), store.Act{Verb: "resolve", Who: "ana", Why: "the provider's list"}
			if err := errors.Join(st.Requeue(t.Context(), act, r.Seen())...); !errors.Is(err, semel.ErrState) {
				t.Errorf("a blind retry: %v", err)
			}
			if err := errors.Join(st.Resolve(t.Context(), resolution, act, r.Seen())...); err != nil {
				t.Fatal(err)
			}
			runsLeased(t, st, p.call, callsOut())
			if r := row(t, st, "m0"); p.calls != want || r.State != store.StateCompleted || r.UnknownOutcome() || !outcome(t, st, "m0").Already(store.Applied) {
				t.Errorf("%d calls, %+v", p.calls, r)
			}
		})
	}
	bubble(t, "E3_a_provider_that_knows_no_keys_is_called_once", func(t *testing.T) {
		st, p, c := diedCalling(t, time.Minute), provides{}, callsOut()
		c.Provider.Window = consumer.WindowNever
		runsLeased(t, st, p.call, c)
		if r := row(t, st, "m0"); p.calls != 0 || r.Reason != semel.ReasonOutcomeUnknown {
			t.Errorf("%d calls, %+v", p.calls, r)
		}
	})
	bubble(t, "E3_a_provider_that_never_forgets_is_called_again", func(t *testing.T) {
		st, p, c := diedCalling(t, 1000*time.Hour), provides{}, callsOut()
		c.Provider.Window = consumer.WindowAlways
		runsLeased(t, st, p.call, c)
		if r := row(t, st, "m0"); p.calls != 1 || r.State != store.StateCompleted {
			t.Errorf("%d calls, %+v", p.calls, r)
		}
	})
}

func TestAProviderIsAsked(t *testing.T) {
	for name, is := range map[string]struct {
		finding       consumer.LookupResult
		err           error
		calls, parked int
		state         store.RowState
	}{
		"that_it_happened":          {consumer.Happened, nil, 0, 0, store.StateCompleted},
		"that_it_did_not":           {consumer.DidNotHappen, nil, 1, 0, store.StateCompleted},
		"in_vain":                   {consumer.StillUnknown, nil, 0, 1, store.StateParked},
		"and_does_not_answer":       {consumer.DidNotHappen, io.EOF, 0, 1, store.StateParked},
		"and_answers_what_is_none_": {consumer.LookupResult(9), nil, 0, 1, store.StateParked},
	} {
		bubble(t, "E3_after_the_window/"+name, func(t *testing.T) {
			st, p, c, asked := diedCalling(t, 25*time.Hour), provides{}, callsOut(), 0
			c.Retry.MaxAttempts = 3
			c.Provider.Lookup = func(_ context.Context, m *semel.Message) (consumer.LookupResult, error) {
				asked++
				if m.Identity.ID != "m0" {
					t.Errorf("asked about %v", m.Identity)
				}
				return is.finding, is.err
			}
			counts := runsLeased(t, st, p.call, c)
			r := row(t, st, "m0")
			if p.calls != is.calls || int(counts.Inbox.Parked) != is.parked || r.State != is.state || r.UnknownOutcome() != (is.parked > 0) {
				t.Errorf("%d calls, %+v, %+v", p.calls, counts.Inbox, r)
			}
			if want := 1 + 2*is.parked; asked != want || is.parked > 0 && (r.Reason != semel.ReasonOutcomeUnknown || r.CallsStarted != 1) {
				t.Errorf("asked %d times, %+v", asked, r)
			}
		})
	}
	bubble(t, "E3_within_the_window_nobody_is_asked", func(t *testing.T) {
		st, p, c := diedCalling(t, time.Hour), provides{}, callsOut()
		c.Provider.Lookup = func(context.Context, *semel.Message) (consumer.LookupResult, error) {
			t.Error("asked")
			return consumer.StillUnknown, nil
		}
		runsLeased(t, st, p.call, c)
		if p.calls != 1 {
			t.Errorf("%d calls", p.calls)
		}
	})
	bubble(t, "E3_a_call_that_is_made_after_asking_and_is_lost_is_asked_about_again", func(t *testing.T) {
		st, c, asked, calls := diedCalling(t, 25*time.Hour), callsOut(), 0, 0
		c.Provider.Lookup = func(context.Context, *semel.Message) (consumer.LookupResult, error) {
			if asked++; asked == 1 {
				return consumer.DidNotHappen, nil
			}
			return consumer.Happened, nil
		}
		runsLeased(t, st, func(context.Context, consumer.Call, *semel.Message) error {
			calls++
			return semel.Unknown(io.EOF)
		}, c)
		if r := row(t, st, "m0"); asked != 2 || calls != 1 || r.State != store.StateCompleted {
			t.Errorf("asked %d times, called %d times: %+v", asked, calls, r)
		}
	})
}

func TestOutcomesAfterAnAnswer(t *testing.T) {
	panics := errors.New("panic")
	late, tooLate := errors.New("late"), errors.New("too late")
	for name, is := range map[string]struct {
		err     error
		unknown bool
	}{
		"refused_for_now":                       {semel.Retry(io.EOF), false},
		"refused_until_later":                   {semel.RetryAfter(io.EOF, time.Second), false},
		"unmet":                                 {semel.PreconditionFailed("nothing to change"), false},
		"said_to_be_unknown":                    {semel.Unknown(io.EOF), true},
		"a_retry_of_what_is_said_to_be_unknown": {semel.RetryAfter(semel.Unknown(io.EOF), time.Second), true},
		"an_error_without_a_decision":           {io.EOF, true},
		"trap_T76_out_of_time":                  {late, true},
		"trap_T76_a_refusal_after_the_timeout":  {tooLate, true},
		"a_panic":                               {panics, true},
	} {
		bubble(t, "E3_after_the_window/"+name, func(t *testing.T) {
			st, c, calls := memstore.New(), callsOut(), 0
			fillInbox(t, st, 1)
			c.OnPrecondition, c.Timeout = consumer.ActionRetry, 30*time.Second
			c.Provider.Window = c.Timeout + time.Second
			runsLeased(t, st, func(ctx context.Context, _ consumer.Call, _ *semel.Message) error {
				calls++
				if calls > 1 {
					return nil
				}
				pass(2 * time.Second) // the window has passed
				switch is.err {
				case panics:
					panic("no")
				case late:
					pass(time.Minute)
					return semel.Permanent(io.EOF) // the consumer no longer waits for this error
				case tooLate:
					pass(28500 * time.Millisecond) // the timeout has passed, but the lease has not ended
					return semel.Retry(io.EOF)
				}
				return is.err
			}, c)
			r := row(t, st, "m0")
			if is.unknown && (calls != 1 || r.State != store.StateParked || r.Reason != semel.ReasonOutcomeUnknown) {
				t.Errorf("%d calls, %+v", calls, r)
			}
			if !is.unknown && (calls != 2 || r.State != store.StateCompleted || r.CallsStarted != 2 || r.UnknownOutcome()) {
				t.Errorf("%d calls, %+v", calls, r)
			}
		})
	}
}

// hasRowsWithoutClaims is a store with an inbox whose rows cannot be claimed.
type hasRowsWithoutClaims struct {
	store.TxStore[*memstore.Tx]
	store.Inbox
}

func TestAProviderThatDoesNotFitIsRefused(t *testing.T) {
	handle := func(context.Context, consumer.Call, *semel.Message) error { return nil }
	for says, window := range map[string]time.Duration{
		"Provider.Window: is -1s; it is a time":                         -time.Second,
		"Provider.Window: is 10s, and must be longer than Timeout, 30s": 10 * time.Second,
	} {
		c := callsOut()
		c.Provider.Window = window
		if _, err := consumer.NewLeased(memstore.New(), handle, c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", window, err)
		}
	}
	c := config(newListSource())
	c.Provider.Window = time.Hour
	if _, err := consumer.New(memstore.New(), add, c); err == nil || !strings.Contains(err.Error(), "it is for NewLeased") {
		t.Error(err)
	}
	store := memstore.New()
	if _, err := consumer.NewLeased[*memstore.Tx](hasRowsWithoutClaims{store, store}, handle, callsOut()); !errors.Is(err, semel.ErrUnsupported) || !strings.Contains(err.Error(), "has no inbox") {
		t.Error(err)
	}
}
