package storetest

import (
	"errors"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// aDay is the duration by which the store's clock was ahead.
const aDay = 24 * time.Hour

// storesTime returns the time of the store's clock.
func (h *fixture[Tx]) storesTime() time.Time { return h.receive("now", aDay, nil).ReceivedAt }

// testClockAhead tests a store whose clock was ahead and is correct again: some of its stored times lie further in
// the future than a correct clock could have written.
func (s suite[Tx]) testClockAhead(t *T) {
	for _, name := range []string{"a_received_row", "a_named_row"} {
		s.run(t, "trap_T113_"+name+"_that_was_dated_ahead_is_due_now",
			"A row that was received while the clock was ahead is due: it is claimed, and the claim reports it.", func(t *T, h *fixture[Tx]) {
				t.needs("Instance.Ahead", h.Ahead != nil)
				n := h.receive("a", 0, []byte("a")).Number
				h.Ahead(t, aDay)
				rows, by := 0, time.Duration(0)
				o := store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Most: 1, Lease: long, Ahead: func(r int, b time.Duration) { rows, by = r, b }}
				if name == "a_named_row" {
					o.Numbers = []int64{n}
				}
				got, err := h.leases().Claim(t.context(), o)
				t.must(err)
				if len(got) != 1 || got[0].Number != n {
					t.Fatalf("%+v is claimed, want row %d", got, n)
				}
				if rows != 1 || by < aDay-long || by > aDay {
					t.Errorf("the claim reports %d rows, %v ahead", rows, by)
				}
				if r := h.number(n); r.ReceivedAt.Sub(h.storesTime()) > 0 {
					t.Errorf("the row was received at %v", r.ReceivedAt)
				}
			})
	}
	s.run(t, "trap_T113_a_retry_dated_in_the_future_waits_for_its_delay",
		"A row whose next attempt was set while the clock was ahead waits for its original delay, from now; a copy does not change that.", func(t *T, h *fixture[Tx]) {
			t.needs("Instance.Ahead", h.Ahead != nil)
			r := h.put("a", store.Row{State: store.StateFailedRetryable, After: long, Message: &semel.Message{Body: []byte("a")}})
			h.Ahead(t, aDay)
			b, v := h.begin(h.contentMark("a", 1))
			h.wantKinds(v, already(store.Waiting))
			h.commit(b, store.Ending{Rows: []store.Row{{Repeat: true}}})
			if got := h.takes(r.Number, long); len(got) != 0 {
				t.Errorf("the row is claimed before its time: %+v", got)
			}
			if wait := h.number(r.Number).DueAt.Sub(h.storesTime()); wait > 2*long {
				t.Errorf("the row is due in %v, want %v", wait, long)
			}
		})
	s.run(t, "trap_T113_a_lease_dated_in_the_future_ends_after_its_length",
		"A claim that was made or extended while the clock was ahead lasts for its lease from now; then another worker can claim the row.", func(t *T, h *fixture[Tx]) {
			t.needs("Instance.Ahead", h.Ahead != nil)
			c := h.claimed("a")[0]
			h.Ahead(t, aDay)
			if got := h.takes(c.Number, long); len(got) != 0 {
				t.Fatalf("the row is claimed by a second worker: %+v", got)
			}
			h.wantKinds(h.asks(h.asking(c)), fresh)
			if left := h.number(c.Number).LockedUntil.Sub(h.storesTime()); left > 2*long {
				t.Errorf("the lease ends in %v, want %v", left, long)
			}
			short := h.takes(h.receive("b", 0, []byte("b")).Number, brief)[0]
			lost, err := h.leases().Extend(t.context(), []store.Claim{short.Claim}, brief)
			t.must(err)
			if len(lost) > 0 {
				t.Errorf("the extension reports as lost %v", lost)
			}
			h.Ahead(t, aDay)
			h.again(short.Number)
		})
	s.run(t, "trap_T113_an_extension_shortens_a_lease_dated_in_the_future",
		"An extension of a claim that was made while the clock was ahead lasts for the lease, not for a day.", func(t *T, h *fixture[Tx]) {
			t.needs("Instance.Ahead", h.Ahead != nil)
			c := h.claimed("a")[0]
			h.Ahead(t, aDay)
			lost, err := h.leases().Start(t.context(), []store.Claim{c.Claim})
			t.must(err)
			again, err := h.leases().Extend(t.context(), []store.Claim{c.Claim}, long)
			t.must(err)
			if len(lost)+len(again) > 0 {
				t.Errorf("the start lost %v, the extension %v", lost, again)
			}
			if left := h.number(c.Number).LockedUntil.Sub(h.storesTime()); left > 2*long || left < long/2 {
				t.Errorf("the lease ends in %v, want %v", left, long)
			}
		})
	s.run(t, "trap_T113_an_operator_retries_a_row_dated_in_the_future",
		"A retry makes the row due now; a filter can select the received rows that are due later.", func(t *T, h *fixture[Tx]) {
			t.needs("Instance.Ahead", h.Ahead != nil)
			n := h.receive("a", 0, []byte("a")).Number
			h.Ahead(t, aDay)
			h.receive("b", 0, []byte("b"))
			f := store.RowFilter{States: []store.RowState{received}, DueLater: true}
			found, err := h.inbox().Rows(t.context(), f)
			t.must(err)
			if len(found) != 1 || found[0].Number != n {
				t.Fatalf("the filter returns %+v, want row %d", found, n)
			}
			parked := h.put("c", store.Row{State: store.StateParked, Reason: semel.ReasonPermanent, Message: &semel.Message{Body: []byte("c")}})
			if all, err := h.inbox().Rows(t.context(), store.RowFilter{DueLater: true}); err != nil || len(all) != 2 || all[1].Number != parked.Number {
				t.Errorf("with rows in other states the filter returns %+v, %v, want rows %d and %d", all, err, n, parked.Number)
			}
			t.must(errors.Join(h.requeuer().Requeue(t.context(), act("release"), store.RowRevision{Number: n, Revision: found[0].Revision})...))
			if found, err = h.inbox().Rows(t.context(), f); err != nil || len(found) > 0 {
				t.Errorf("the filter returns %+v, %v", found, err)
			}
			if r := h.number(n); r.State != received || r.DueAt.Sub(h.storesTime()) > 0 {
				t.Errorf("the row is %s and due at %v", r.State, r.DueAt)
			}
			h.wantActs(n, "release done")
		})
	s.run(t, "trap_T113_a_skipped_row_dated_in_the_future_is_due_now",
		"Rows behind a skipped row continue, and the row waits no longer than with a correct clock.", func(t *T, h *fixture[Tx]) {
			t.needs("Instance.Ahead", h.Ahead != nil)
			t.needs("Abilities.Lines", s.h.Can.Lines)
			rows := append(h.enters("k", received, "1"), h.enters("k", blocked, "2")...)
			h.Ahead(t, aDay)
			t.must(errors.Join(h.lines().Skip(t.context(), act("skip"), rows[0].Seen())...))
			h.wantStates(rows, received, received)
			if r := h.number(rows[0].Number); r.DueAt.Sub(h.storesTime()) > 0 {
				t.Errorf("the row is due at %v", r.DueAt)
			}
		})
	s.run(t, "trap_T113_an_operator_retries_a_received_row_that_waits",
		"A retry makes a received row due if it is due later, and is refused if it is due already.", func(t *T, h *fixture[Tx]) {
			r := h.receive("a", aDay, []byte("a"))
			t.must(h.retry(r.Seen()))
			r = h.number(r.Number)
			if r.State != store.StateReceived || r.DueAt.Sub(r.ReceivedAt) > long {
				t.Errorf("the row is %s and due at %v", r.State, r.DueAt)
			}
			h.t.wantErr("the answer", h.retry(r.Seen()), admin.ErrDueAlready)
			h.wantActs(r.Number, "retry done")
			h.works(r.Number)
		})
}

// testWrongTimes tests messages whose timestamps are in the future, and a clock or a retention that changes after
// markers were removed.
func (s suite[Tx]) testWrongTimes(t *T) {
	old, ahead := store.Verdict{Kind: store.Old}, store.Verdict{Kind: store.Old, Ahead: true}
	s.run(t, "H4_a_message_dated_in_the_future_is_old_after_a_removal",
		"A message dated in the future would be fresh again after its marker is removed, so it does not run on its own.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			next := time.Now().Add(365 * 24 * time.Hour)
			h.wantKinds(h.deliver(h.aged("a", next)), fresh) // the store has not removed a marker yet
			h.reaped(1)
			want := ahead
			if s.h.Can.OneConsumer {
				want = already(store.Applied)
			}
			h.wantKinds(h.asks(h.aged("a", next)), want)
			h.wantKinds(h.asks(h.aged("b", next)), ahead)
			h.wantKinds(h.asks(h.aged("c", time.Now().Add(store.MaxClockSkew/2))), fresh)
		})
	s.run(t, "H2_a_cutoff_that_goes_back_keeps_younger_markers",
		"If the clock was set back or the retention made longer, a marker within the retention stays, whatever was removed before.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			h.deliver(h.contentMark("a", 1))
			h.park("b")
			h.reaped(1)
			h.deliver(h.contentMark("c", 1))
			moment(h.t.context())
			h.t.must(h.reaper().Progressed(h.t.context(), "billing", nil))
			if _, err := h.reaper().Advance(h.t.context(), "billing"); err != nil {
				t.Fatal(err)
			}
			h.retain(store.Retention{Keep: time.Hour})
			for after := (store.ReapMark{}); !after.Done; {
				r, err := h.reaper().Reap(h.t.context(), store.Reaping{Consumer: "billing", Most: 10, After: after})
				h.t.must(err)
				if r.Markers != 0 || r.Rows != 0 {
					t.Fatalf("%+v was removed of what is to be kept for an hour", r)
				}
				after = r.Next
			}
			h.wantKinds(h.asks(h.aged("c", longAgo)), already(store.Applied))
		})
	if s.h.Can.OneConsumer {
		return
	}
	s.run(t, "A7_H4_a_new_scope_begins_at_the_low_water_mark",
		"A new generation or source of a consumer uses the consumer's low-water mark: an older message is old.", func(t *T, h *fixture[Tx]) {
			h.retain(store.Retention{Keep: shortRetention})
			h.deliver(h.contentMark("a", 1))
			h.reaped(1)
			for _, of := range []struct {
				consumer, source string
				generation       int64
				want             store.Verdict
			}{{"billing", "shop", 1, old}, {"billing", "shop2", 0, old}, {"audit", "shop", 0, fresh}} {
				n, err := h.Store.Scope(h.t.context(), of.consumer, of.source, of.generation)
				if errors.Is(err, semel.ErrUnsupported) {
					continue
				}
				h.t.must(err)
				m := h.aged("a", longAgo)
				m.Scope = n
				h.wantKinds(h.asks(m), of.want)
			}
			if at, err := h.reaper().Removed(h.t.context(), "billing"); err != nil || at.IsZero() || at.After(time.Now()) {
				t.Errorf("the store has removed up to %v, %v", at, err)
			}
			if at, err := h.reaper().Removed(h.t.context(), "audit"); err != nil || !at.IsZero() {
				t.Errorf("for another consumer %v, %v", at, err)
			}
		})
}

// testShown tests what the store reports to operators' commands and to cron jobs.
func (s suite[Tx]) testShown(t *T) {
	s.run(t, "H3_a_dry_run_counts_and_changes_nothing", "A dry run returns what the next call removes.", func(t *T, h *fixture[Tx]) {
		h.retain(store.Retention{Keep: shortRetention})
		h.deliver(h.contentMark("a", 1), h.contentMark("b", 1))
		ctx := h.t.context()
		for counted := int64(0); counted < 2; moment(ctx) {
			h.t.must(h.reaper().Progressed(ctx, "billing", nil))
			sum, over := store.Reaped{}, false
			for !over {
				o := store.Reaping{Consumer: "billing", Most: 10, After: sum.Next, DryRun: true}
				r, err := h.reaper().Reap(ctx, o)
				h.t.must(err)
				over = sum.Add(o, r)
			}
			counted = sum.Markers
		}
		h.wantKinds(h.asks(h.contentMark("a", 1), h.contentMark("b", 1), h.aged("c", longAgo)), already(store.Applied), already(store.Applied), fresh)
		h.reaped(2)
	})
	s.run(t, "H3_the_store_reports_how_far_the_reaper_is",
		"The store reports policy, progress, cutoff and the first due marker of each consumer.", func(t *T, h *fixture[Tx]) {
			policy := store.Retention{Consumer: "billing", Keep: shortRetention, Bodies: time.Minute, Horizon: 0, Why: "a test"}
			h.retain(policy)
			h.deliver(h.contentMark("a", 1))
			moment(h.t.context())
			h.t.must(h.reaper().Progressed(h.t.context(), "billing", nil))
			k := h.storedRetention()
			if k.Retention != policy || k.Progress.IsZero() || k.First.IsZero() || !k.First.Before(k.Cutoff) || !k.Low.IsZero() || k.LastDay != 1 || k.Held != "" {
				t.Errorf("it says %+v", k)
			}
			h.reaped(1)
			before := k.Cutoff
			if at, err := h.reaper().Advance(h.t.context(), "billing"); err != nil || at.Before(k.Cutoff) || !at.Equal(h.storedRetention().Low) {
				t.Errorf("the low-water mark is raised to %v, and is %v, %v", at, h.storedRetention().Low, err)
			}
			if k = h.storedRetention(); !k.First.IsZero() && k.First.Before(before) || k.Low.IsZero() || k.LastDay != 0 {
				t.Errorf("after the reaper the retention is %+v", k)
			}
			if all, err := h.reaper().Retentions(h.t.context(), ""); err != nil || len(all) != 1 {
				t.Errorf("all retentions are %+v, %v", all, err)
			}
		})
}

// testNewerReleases tests markers that a newer release has written. A store may refuse to write an outcome of a newer
// release; the case then ends without a check.
func (s suite[Tx]) testNewerReleases(t *T) {
	t.Run("trap_T104_an_outcome_of_a_newer_release_is_reported_as_such",
		"A marker with an outcome that this release does not know is never read as a known outcome or as missing, whatever its content.", func(t *T) {
			for _, outcome := range []store.Outcome{6, 9, 255} {
				h := s.open(t)
				if !h.writeMarker("a", outcome) {
					continue
				}
				is := store.Verdict{Kind: store.Newer, Was: outcome}
				h.wantKinds(h.deliver(h.mark("b"), h.mark("a"), h.mark("c")), fresh, is, fresh)
				h.wantKinds(h.deliver(h.contentMark("a", 1)), is)
				h.wantCount("a", 0)
				h.wantCount("c", 1)
			}
		})
}

// writeMarker writes a marker with the given outcome, and returns false if the store refuses to write it.
func (h *fixture[Tx]) writeMarker(id string, o store.Outcome) bool {
	h.t.Helper()
	m := h.mark(id)
	m.As = o
	b, _, err := h.Store.Begin(h.t.context(), store.TxOptions{}, []store.Mark{m})
	return err == nil && b.Commit(h.t.context(), store.Ending{}).Outcome == store.Committed
}

// testUnknownStates tests rows that a newer release has written.
func (s suite[Tx]) testUnknownStates(t *T) {
	t.Run("trap_T104_a_row_of_a_newer_release_is_listed_and_not_changed",
		"A row whose state this release does not know is listed with that state, and is neither closed nor run again.", func(t *T) {
			for _, state := range []store.RowState{"FUTURE", "FAILED_TERMINAL"} {
				h := s.open(t)
				if h.hasRow("a", state) {
					s.untouched(h, state)
				}
			}
		})
}

// hasRow writes a row in the given state, and returns false if the store refuses to write it.
func (h *fixture[Tx]) hasRow(id string, state store.RowState) bool {
	h.t.Helper()
	m := h.mark(id)
	m.As = store.Parked
	b, _ := h.begin(m)
	row := store.Row{State: state, LastError: "as it was", Message: &semel.Message{Body: []byte(id)}}
	return b.Commit(h.t.context(), store.Ending{Rows: []store.Row{row}}).Outcome == store.Committed
}

func (s suite[Tx]) untouched(h *fixture[Tx], state store.RowState) {
	t := h.t
	r := h.rowOfIdentity("a", false)
	if r.State != state || !strings.Contains(r.LastError, "as it was") {
		t.Errorf("the row is %+v", r)
	}
	h.wantNewer(errors.New(r.LastError), state)
	acts := []error{errors.Join(h.inbox().Discard(t.context(), act("discard"), r.Seen())...)}
	if s.h.Can.Leases {
		acts = append(acts,
			h.retry(r.Seen()),
			h.release(r.Seen()))
	}
	for _, err := range acts {

		h.wantNewer(err, state)
		if !errors.Is(err, semel.ErrState) {
			t.Errorf("%v is not ErrState", err)
		}
	}
	if after := h.rowOfIdentity("a", false); after.Revision != r.Revision || after.State != r.State {
		t.Errorf("the row was %+v and is %+v", r, after)
	}
	h.wantActs(r.Number)
}

// wantNewer checks that the text of an error contains the state, and that a newer release wrote the row.
func (h *fixture[Tx]) wantNewer(err error, state store.RowState) {
	h.t.Helper()
	if err == nil || !strings.Contains(err.Error(), string(state)) || !strings.Contains(err.Error(), "newer release") {
		h.t.Errorf("got %v, want an error that names %s and the newer release", err, state)
	}
}
