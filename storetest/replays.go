package storetest

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

func hasReplays(store any) bool {
	_, replays := store.(admin.Replays)
	_, foretells := store.(admin.Previewer)
	return replays && foretells
}

// anHour is a lease that does not expire during a test.
const anHour = time.Hour

func (h *fixture[Tx]) replays() admin.Replays { return h.Store.(admin.Replays) }

// replaying begins a replay of a consumer, with the given token and lease, and returns the number of the replay.
func (h *fixture[Tx]) replaying(consumer string, generation int64, t store.Token, lease time.Duration) int64 {
	h.t.Helper()
	n, err := h.replays().NewReplay(h.t.context(), admin.Replay{Consumer: consumer, Kind: admin.ReplayAgain, Generation: generation, Progress: someProgress(1)}, t, lease, order("replay start", "ana", "lost"))
	h.t.must(err)
	return n
}

// someProgress returns a ReplayProgress in which every field is set.
func someProgress(n int64) admin.ReplayProgress {
	return admin.ReplayProgress{
		Range:  "all of \"orders\"",
		Lanes:  []admin.ReplayLane{{Lane: "orders/0", Is: "x", From: 3, To: 1 << 40, After: n}, {Lane: "ø \\ \" \n", From: 0, To: 1, After: -1}},
		Counts: admin.ReplayCounts{Read: n, Applied: n}, Prediction: &admin.ReplayCounts{Read: 7, Skipped: 7},
	}
}

func (h *fixture[Tx]) wantReplay(number int64, state admin.ReplayState, run bool, p admin.ReplayProgress) admin.Replay {
	h.t.Helper()
	r, err := h.replays().Replay(h.t.context(), number)
	h.t.must(err)
	if r.State != state || r.Left > 0 != run || !reflect.DeepEqual(r.Progress, p) || r.Ended.IsZero() == r.State.Ended() || r.Start.At.IsZero() || r.Saved.IsZero() {
		h.t.Errorf("the replay is %+v, want %s, run: %v, with %+v", r, state, run, p)
	}
	return r
}

// testReplays tests the interface admin.Replays.
func (s suite[Tx]) testReplays(t *T) {
	s.run(t, "G1_a_replay_is_stored_as_it_was_begun",
		"A replay is found by its number and in the list of its consumer's replays, newest first, with who, why, when and its progress.", func(t *T, h *fixture[Tx]) {
			first := h.replaying("billing", 0, 1, anHour)
			other := h.replaying("bil\x00ling\xff", 0, 1, anHour)
			third := h.replaying("billing", 2, 1, anHour)
			r := h.wantReplay(first, admin.ReplayRunning, true, someProgress(1))
			if r.Consumer != "billing" || r.Kind != admin.ReplayAgain || r.Start.By != "ana" || r.Start.Why != "lost" || r.Effects || r.Stop != (admin.Order{}) || first == other {
				t.Errorf("it is %+v", r)
			}
			h.wantListed("billing", 0, third, first)
			h.wantListed("bil\x00ling\xff", 0, other)
			h.wantListed("", 0, third, other, first)
			h.wantListed("", 2, third, other)
			h.wantListed("nobody", 0)
			_, err := h.replays().Replay(t.context(), third+1)
			h.t.wantErr("the answer", err, admin.ErrNoReplay)
		})
	s.run(t, "trap_T47_one_replay_of_a_consumer_at_a_time",
		"If many processes begin a replay of one consumer at once, one succeeds and the others are refused until that replay has ended.", func(t *T, h *fixture[Tx]) {
			var begun atomic.Int64
			replays := h.replays()
			runConcurrently(8, func(int) {
				n, err := replays.NewReplay(t.context(), admin.Replay{Consumer: "billing", Kind: admin.ReplayAgain}, 1, anHour, order("replay start", "ana", "x"))
				switch {
				case err == nil && !begun.CompareAndSwap(0, n):
					t.Error("two have begun")
				case err != nil && !errors.Is(err, admin.ErrReplayOpen):
					t.Errorf("refused by %v", err)
				}
			})
			n := begun.Load()
			t.must(h.replays().EndReplay(t.context(), n, 1, admin.ReplayDone, someProgress(5), order("replay done", "ana", "x")))
			h.wantReplay(n, admin.ReplayDone, false, someProgress(5))
			h.replaying("billing", 0, 2, anHour)
		})
	s.testReplayTokens(t)
	s.testReplayStops(t)
	s.testReplayActs(t)
	s.testPreviews(t)
}

func (h *fixture[Tx]) wantListed(consumer string, limit int, want ...int64) {
	h.t.Helper()
	all, err := h.replays().ReplaysOf(h.t.context(), consumer, limit)
	h.t.must(err)
	var got []int64
	for _, r := range all {
		got = append(got, r.Number)
	}
	if !slices.Equal(got, want) {
		h.t.Errorf("the replays of %q are %v, want %v", consumer, got, want)
	}
}

// testReplayTokens tests that only the process with the replay's current token can change the replay.
func (s suite[Tx]) testReplayTokens(t *T) {
	s.run(t, "law_5_a_replay_changes_under_its_token_alone",
		"Without the current token of a replay, a process can neither save progress nor end the replay.", func(t *T, h *fixture[Tx]) {
			n := h.replaying("billing", 0, 1, anHour)
			_, err := h.replays().SaveReplay(t.context(), n, 2, anHour, someProgress(9))
			h.t.wantErr("the answer", err, store.ErrClaimLost)
			h.t.wantErr("the answer", h.replays().EndReplay(t.context(), n, 2, admin.ReplayDone, someProgress(9), order("replay done", "bo", "x")), store.ErrClaimLost)
			_, err = h.replays().TakeReplay(t.context(), n, 2, anHour, order("replay resume", "bo", "x"))
			h.t.wantErr("the answer", err, admin.ErrReplayHeld)
			h.wantReplay(n, admin.ReplayRunning, true, someProgress(1))
			state, err := h.replays().SaveReplay(t.context(), n, 1, 0, someProgress(2)) // the lease expires at once
			t.must(err)
			if state != admin.ReplayRunning {
				t.Errorf("it is %s", state)
			}
			r, err := h.replays().TakeReplay(t.context(), n, 2, anHour, order("replay resume", "bo", "x"))
			t.must(err)
			if r.Number != n || r.State != admin.ReplayRunning || !reflect.DeepEqual(r.Progress, someProgress(2)) || r.Left <= 0 {
				t.Errorf("the replay that was taken over is %+v", r)
			}
			_, err = h.replays().SaveReplay(t.context(), n, 1, anHour, someProgress(9))
			h.t.wantErr("the answer", err, store.ErrClaimLost)
			h.wantReplay(n, admin.ReplayRunning, true, someProgress(2))
		})
	s.run(t, "G1_a_finished_replay_is_not_resumed",
		"After a replay has ended or stopped, its token is invalid; a stopped replay can be resumed, unless another one is open.", func(t *T, h *fixture[Tx]) {
			n := h.replaying("billing", 0, 1, anHour)
			t.must(h.replays().EndReplay(t.context(), n, 1, admin.ReplayStopped, someProgress(3), order("replay stopped", "ana", "x")))
			_, err := h.replays().SaveReplay(t.context(), n, 1, anHour, someProgress(9))
			h.t.wantErr("the answer", err, store.ErrClaimLost)
			h.wantReplay(n, admin.ReplayStopped, false, someProgress(3))
			second := h.replaying("billing", 0, 1, anHour)
			_, err = h.replays().TakeReplay(t.context(), n, 2, anHour, order("replay resume", "bo", "x"))
			h.t.wantErr("the answer", err, admin.ErrReplayOpen)
			t.must(h.replays().EndReplay(t.context(), second, 1, admin.ReplayDone, someProgress(3), order("replay done", "ana", "x")))
			_, err = h.replays().TakeReplay(t.context(), second, 2, anHour, order("replay resume", "bo", "x"))
			h.t.wantErr("the answer", err, admin.ErrReplayEnded)
			_, err = h.replays().TakeReplay(t.context(), n, 2, anHour, order("replay resume", "bo", "x"))
			t.must(err)
			h.wantReplay(n, admin.ReplayRunning, true, someProgress(3))
		})
}

// testReplayStops tests how a process stops a replay that another process runs.
func (s suite[Tx]) testReplayStops(t *T) {
	s.run(t, "G1_a_replay_is_stopped_from_elsewhere",
		"SaveReplay tells the process that runs a replay to stop; a replay that no process runs is stopped at once.", func(t *T, h *fixture[Tx]) {
			n := h.replaying("billing", 0, 1, anHour)
			r, err := h.replays().StopReplay(t.context(), n, order("replay stop", "bo", "slow"))
			t.must(err)
			if r.State != admin.ReplayStopping || r.Stop.By != "bo" || r.Stop.Why != "slow" || r.Stop.At.IsZero() {
				t.Errorf("it is %+v", r)
			}
			state, err := h.replays().SaveReplay(t.context(), n, 1, anHour, someProgress(2))
			t.must(err)
			if state != admin.ReplayStopping {
				t.Errorf("SaveReplay returned the state %s", state)
			}
			_, err = h.replays().StopReplay(t.context(), n, order("replay stop", "cy", "x"))
			h.t.wantErr("the answer", err, admin.ErrReplayEnded)
			t.must(h.replays().EndReplay(t.context(), n, 1, admin.ReplayStopped, someProgress(2), order("replay stopped", "ana", "x")))
			if r := h.wantReplay(n, admin.ReplayStopped, false, someProgress(2)); r.Stop.By != "bo" {
				t.Errorf("the stop was recorded as %+v", r.Stop)
			}
			n = h.replaying("billing", 0, 1, 0)
			if r, err = h.replays().StopReplay(t.context(), n, order("replay stop", "bo", "x")); err != nil || r.State != admin.ReplayStopped {
				t.Errorf("a replay that no process runs is %+v, %v", r, err)
			}
			h.wantReplay(n, admin.ReplayStopped, false, someProgress(1))
			_, err = h.replays().StopReplay(t.context(), n+1, order("replay stop", "bo", "x"))
			h.t.wantErr("the answer", err, admin.ErrNoReplay)
		})
}

// testReplayActs tests which audit records replays write.
func (s suite[Tx]) testReplayActs(t *T) {
	if !s.h.Can.Inbox {
		return
	}
	s.run(t, "law_14_who_replays_and_why_is_recorded",
		"Begin, stop, resumption and end of a replay are recorded as acts of no row with the consumer and the number; progress, and what was refused, is not.", func(t *T, h *fixture[Tx]) {
			n := h.replaying("billing", 0, 1, anHour)
			_, err := h.replays().SaveReplay(t.context(), n, 1, 0, someProgress(2))
			t.must(err)
			_, err = h.replays().TakeReplay(t.context(), n, 2, anHour, order("replay resume", "bo", "again"))
			t.must(err)
			h.t.wantErr("the answer", h.replays().EndReplay(t.context(), n, 1, admin.ReplayDone, someProgress(3), order("replay done", "ana", "x")), store.ErrClaimLost)
			_, err = h.replays().StopReplay(t.context(), n, order("replay stop", "cy", "slow"))
			t.must(err)
			t.must(h.replays().EndReplay(t.context(), n, 2, admin.ReplayStopped, someProgress(3), order("replay stopped", "bo", "3 read")))
			acts, err := h.inbox().Acts(t.context(), 0, 0)
			t.must(err)
			var verbs []string
			for _, a := range acts {
				verbs = append(verbs, a.Verb)
				if a.Row != 0 || a.Who == "" || !strings.HasPrefix(a.Why, "consumer billing, replay ") || a.Result != "done" {
					t.Errorf("an act is %+v", a)
				}
			}
			if want := []string{"replay start", "replay resume", "replay stop", "replay stopped"}; !slices.Equal(verbs, want) {
				t.Errorf("the acts are %q, want %q", verbs, want)
			}
		})
}

// testPreviews tests the interface admin.Previewer.
func (s suite[Tx]) testPreviews(t *T) {
	s.run(t, "G4_a_preview_predicts_the_verdict_of_a_mark",
		"A preview predicts fresh, seen and conflict as Begin answers them, and writes neither a marker nor a scope.", func(t *T, h *fixture[Tx]) {
			h.deliver(h.contentMark("applied", 1))
			b, _ := h.begin(store.Mark{Scope: h.scope, ID: []byte("parked"), As: store.Parked})
			h.commit(b, store.Ending{})
			marks := []store.Mark{h.contentMark("applied", 1), h.contentMark("applied", 2), h.mark("new"), h.mark("parked"), h.mark(strings.Repeat("long", 1000))}
			var all []admin.PreviewQuery
			for _, m := range marks {
				all = append(all, admin.PreviewQuery{Source: "shop", Mark: m})
			}
			all = append(all, admin.PreviewQuery{Source: "another", Mark: h.mark("applied")})
			for range 2 {
				got, err := h.Store.(admin.Previewer).Preview(t.context(), "billing", 0, all)
				if errors.Is(err, semel.ErrUnsupported) && s.h.Can.OneConsumer {
					return
				}
				t.must(err)
				h.wantKinds(got, already(store.Applied), conflict, fresh, already(store.Parked), fresh, fresh)
			}
			if !s.h.Can.OneConsumer { // an identity of the previous derivation has another scope
				got, err := h.Store.(admin.Previewer).Preview(t.context(), "billing", 1, all[:1])
				t.must(err)
				h.wantKinds(got, fresh)
			}
			if s.h.Can.LongestID == 0 {
				h.wantKinds(h.asks(marks...), already(store.Applied), conflict, fresh, already(store.Parked), fresh)
			}
		})
}

// testControls tests the interface admin.Controls.
func (s suite[Tx]) testControls(t *T) {
	s.run(t, "I0_each_consumer_has_its_own_controls",
		"The store returns the last pause and the last limit of each consumer, each with who, why and when; neither changes the other.", func(t *T, h *fixture[Tx]) {
			c := h.Store.(admin.Controls)
			h.wantControl(c, "billing", admin.Control{})
			t.must(c.Pause(t.context(), "billing", true, order("pause", "ana", "one")))
			t.must(c.Limit(t.context(), "billing", 7, order("limit", "bo", "two")))
			t.must(c.Limit(t.context(), "billing\x00\xff", 1<<30, order("limit", "bo", "other")))
			h.wantControl(c, "billing", admin.Control{Paused: true, Pause: admin.Order{By: "ana", Why: "one"}, PerSecond: 7, Limit: admin.Order{By: "bo", Why: "two"}})
			h.wantControl(c, "billing\x00\xff", admin.Control{PerSecond: 1 << 30, Limit: admin.Order{By: "bo", Why: "other"}})
			t.must(c.Pause(t.context(), "billing", false, order("resume", "cy", "three")))
			h.wantControl(c, "billing", admin.Control{Pause: admin.Order{By: "cy", Why: "three"}, PerSecond: 7, Limit: admin.Order{By: "bo", Why: "two"}})
			t.must(c.Pause(t.context(), "billing", true, order("pause", "cy", "four")))
			t.must(c.Limit(t.context(), "billing", 0, order("limit", "cy", "five")))
			h.wantControl(c, "billing", admin.Control{Paused: true, Pause: admin.Order{By: "cy", Why: "four"}, Limit: admin.Order{By: "cy", Why: "five"}})
		})
	s.run(t, "I0_the_consumers_of_a_store_are_listed",
		"Consumers with a scope and consumers with a control are listed by name, each once.", func(t *T, h *fixture[Tx]) {
			c := h.Store.(admin.Controls)
			h.scopeOf("billing", "other", 0)
			want := []string{"billing"}
			t.must(c.Pause(t.context(), "billing", true, order("pause", "ana", "x")))
			t.must(c.Limit(t.context(), "a", 1, order("limit", "ana", "x")))
			want = append([]string{"a"}, want...)
			got, err := c.Consumers(t.context())
			t.must(err)
			if !slices.Equal(got, want) {
				t.Errorf("the consumers are %q, want %q", got, want)
			}
		})
	s.run(t, "I0_a_negative_limit_is_refused", "A negative limit is refused and changes nothing.", func(t *T, h *fixture[Tx]) {
		c := h.Store.(admin.Controls)
		if err := c.Limit(t.context(), "billing", -1, order("limit", "ana", "x")); err == nil {
			t.Error("it is kept")
		}
		h.wantControl(c, "billing", admin.Control{})
	})
	if s.h.Can.Inbox {
		s.testOrders(t)
	}
}

// testOrders tests the audit records of the operators' commands that pause or limit a consumer.
func (s suite[Tx]) testOrders(t *T) {
	s.run(t, "I0_a_control_is_recorded",
		"A pause, a resume or a limit is recorded with who, why and the consumer's name, as an act without a row.", func(t *T, h *fixture[Tx]) {
			c := h.Store.(admin.Controls)
			t.must(c.Pause(t.context(), "billing", true, order("pause", "ana", "first")))
			t.must(c.Limit(t.context(), "billing", 7, order("limit", "bo", "second")))
			acts, err := h.inbox().Acts(t.context(), 0, 0)
			t.must(err)
			if len(acts) != 2 {
				t.Fatalf("%d acts: %+v", len(acts), acts)
			}
			for i, want := range []store.Act{{Verb: "pause", Who: "ana", Why: "first"}, {Verb: "limit", Who: "bo", Why: "second"}} {
				a := acts[i]
				if a.Verb != want.Verb || a.Who != want.Who || a.Row != 0 || a.Result != "done" || a.At.IsZero() || !strings.HasPrefix(a.Why, "consumer billing") || !strings.HasSuffix(a.Why, want.Why) {
					t.Errorf("act %d is %+v, want %+v", i, a, want)
				}
			}
			if !strings.Contains(acts[1].Why, "7 messages a second") {
				t.Errorf("the act of a limit does not contain the limit: %q", acts[1].Why)
			}
		})
}

func order(verb, who, why string) store.Act { return store.Act{Verb: verb, Who: who, Why: why} }

// wantControl compares a consumer's control with the expected control. The time of an operator's setting is not
// compared, but it must be set.
func (h *fixture[Tx]) wantControl(c admin.Controls, consumer string, expected admin.Control) {
	h.t.Helper()
	got, err := c.Control(h.t.context(), consumer)
	h.t.must(err)
	for _, o := range []*admin.Order{&got.Pause, &got.Limit} {
		if o.At.IsZero() != (o.By == "") {
			h.t.Errorf("of %q: %+v", consumer, *o)
		}
		o.At = time.Time{}
	}
	if got != expected {
		h.t.Errorf("the control of %q is %+v, want %+v", consumer, got, expected)
	}
}
