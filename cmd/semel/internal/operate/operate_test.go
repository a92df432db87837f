package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

type fakeInbox struct {
	rows []store.StoredRow
	acts []store.Act
	// requeueErrors has the errors that Requeue returns, by row number.
	requeueErrors map[int64]error
	// beforeRequeue is called before each call of Requeue; may be nil.
	beforeRequeue func(f *fakeInbox)
}

func onlyBilling(r store.StoredRow) error {
	if r.Key.Consumer == "billing" {
		return nil
	}
	return fmt.Errorf("the policy has no consumer %q", r.Key.Consumer)
}

func (f *fakeInbox) Requeue(_ context.Context, a store.Act, rows ...store.RowRevision) (errs []error) {
	if f.beforeRequeue != nil {
		f.beforeRequeue(f)
	}
	for _, r := range rows {
		if f.requeueErrors[r.Number] == nil {
			a.Row = r.Number
			f.acts = append(f.acts, a)
		}
		errs = append(errs, f.requeueErrors[r.Number])
	}
	return errs
}

func (f *fakeInbox) Reopen(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return f.Requeue(ctx, a, rows...)
}

func (f *fakeInbox) Suppress(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return f.Requeue(ctx, a, rows...)
}

func (f *fakeInbox) Release(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	return f.Requeue(ctx, a, rows...)
}

func (f *fakeInbox) Rows(_ context.Context, filter store.RowFilter) ([]store.StoredRow, error) {
	var found []store.StoredRow
	for _, r := range f.rows {
		chosen := r.Number > filter.After && (len(filter.Numbers) == 0 || slices.Contains(filter.Numbers, r.Number)) &&
			(len(filter.States) == 0 || slices.Contains(filter.States, r.State))
		if chosen && len(found) < filter.Limit {
			found = append(found, r)
		}
	}
	return found, nil
}

func (f *fakeInbox) Discard(_ context.Context, a store.Act, rows ...store.RowRevision) []error {
	errs := make([]error, len(rows))
	for k, seen := range rows {
		for i := range f.rows {
			switch r := &f.rows[i]; {
			case r.Number != seen.Number:
			case r.Revision != seen.Revision:
				errs[k] = semel.ErrChanged
			default:
				r.State, r.Revision, a.Row = store.StateDiscarded, r.Revision+1, r.Number
				f.acts = append(f.acts, a)
			}
		}
	}
	return errs
}

func (f *fakeInbox) Pending(context.Context, string) (store.Pending, error) {
	return store.Pending{}, nil
}

func (f *fakeInbox) Acts(context.Context, int64, int) ([]store.Act, error) { return f.acts, nil }

// newParkedInbox returns n parked rows of the consumer billing.
func newParkedInbox(n int) *fakeInbox {
	f := &fakeInbox{}
	for i := range n {
		key := semel.Key{Consumer: "billing", ID: fmt.Sprintf("p-%d", i+1)}
		f.rows = append(f.rows, store.StoredRow{Number: int64(i + 1), Revision: 1, Key: key, State: store.StateParked})
	}
	return f
}

func carry(t *testing.T, f *fakeInbox, o Order) []string {
	t.Helper()
	var results []string
	for r, err := range (Box{Store: "shop", Inbox: f, Requeuer: f}).Carry(context.Background(), o) {
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, fmt.Sprintf("%d %s", r.Number, r.Result))
	}
	return results
}

func TestAnOrderIsCarriedOutRowByRowOverManyPages(t *testing.T) {
	f := newParkedInbox(3*page + 1)
	results := carry(t, f, Order{Verb: admin.Discard, Filter: store.RowFilter{States: []store.RowState{store.StateParked}}, Who: "ann", Why: "test data"})
	if len(results) != 3*page+1 || len(f.acts) != len(results) {
		t.Fatalf("%d results, %d acts", len(results), len(f.acts))
	}
	if a := f.acts[0]; a.Who != "ann" || a.Why != "test data" || a.Verb != "discard" || a.Row != 1 {
		t.Errorf("the first act is %+v", a)
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	f := newParkedInbox(2)
	results := carry(t, f, Order{Verb: admin.Discard, DryRun: true})
	if !slices.Equal(results, []string{"1 would be done", "2 would be done"}) || len(f.acts) != 0 {
		t.Errorf("%v, %d acts", results, len(f.acts))
	}
}

func TestOneRowThatIsRefusedOrFailsDoesNotStopTheOthers(t *testing.T) {
	f := newParkedInbox(6)
	f.rows[1].State = store.StateDiscarded
	f.rows[2].Surrogate = true
	f.rows[3].Key.Consumer = "unknown"
	f.requeueErrors = map[int64]error{1: semel.ErrChanged, 5: fmt.Errorf("again: %w", semel.ErrConflict), 6: errors.New("the server is gone")}
	order := Order{
		Verb:   admin.Retry,
		Filter: store.RowFilter{Numbers: []int64{6, 5, 4, 3, 2, 1, 1, 99}},
		Worked: onlyBilling,
	}
	want := []string{"1 refused", "2 refused", "3 refused", "4 refused", "5 refused", "6 failed", "99 refused"}
	if got := carry(t, f, order); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// markers has the ids of applied identities.
type markers map[string]bool

func (m markers) Marker(_ context.Context, key semel.Key) (admin.StoredMarker, bool, error) {
	return admin.StoredMarker{Outcome: store.Applied}, m[key.ID], nil
}

func TestADryRunPredictsRefusedRetries(t *testing.T) {
	f := newParkedInbox(3)
	f.rows[0].Conflict, f.rows[0].Reason = true, semel.ReasonConflict
	f.rows[2].State, f.rows[2].Surrogate, f.rows[2].Reason = store.StateDiscarded, true, semel.ReasonMalformed
	f.requeueErrors = map[int64]error{1: fmt.Errorf("row %d: %w", 1, semel.ErrConflict)}
	box := Box{Store: "shop", Inbox: f, Requeuer: f, Markers: markers{"p-1": true}}
	for _, dry := range []bool{true, false} {
		order := Order{Verb: admin.Retry, DryRun: dry, Worked: onlyBilling}
		done := map[bool]string{true: Would, false: Due}[dry]
		var got []string
		for r, err := range box.Carry(t.Context(), order) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.Result+": "+r.Error)
		}
		want := []string{
			"refused: another content of this identity is applied; find out from the producer which content is right; if it is this one, correct the effect by hand; then discard this row",
			done + ": ",
			"refused: it is discarded: the row's state does not allow this",
		}
		if !slices.Equal(got, want) {
			t.Errorf("dry run %v: got %q, want %q", dry, got, want)
		}
	}
}

func TestAnOrderEndsWithItsContext(t *testing.T) {
	f := newParkedInbox(page + 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last error
	results := 0
	for r, err := range (Box{Inbox: f}).Carry(ctx, Order{Verb: admin.Discard}) {
		if last = err; r.Result == Done {
			results++
		}
		cancel()
	}
	if !errors.Is(last, context.Canceled) || results != page || len(f.acts) != page {
		t.Errorf("%v after %d commands with %d results, want a page", last, len(f.acts), results)
	}
}

func TestAnOrderThatIsCancelledInItsLastPageReturnsTheError(t *testing.T) {
	f := newParkedInbox(2)
	ctx, cancel := context.WithCancel(context.Background())
	f.requeueErrors = map[int64]error{1: context.Canceled, 2: context.Canceled}
	f.beforeRequeue = func(*fakeInbox) { cancel() }
	var last error
	for _, err := range (Box{Inbox: f, Requeuer: f}).Carry(ctx, Order{Verb: admin.Retry}) {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("it ended with %v", last)
	}
}

func TestRetriesWithoutAnIdentityAreRefusedWithTheCause(t *testing.T) {
	for reason, remedy := range map[semel.Reason]string{
		semel.ReasonTooLarge: "raise max_body", reasonname.Filtered: "correct filter in the policy", semel.ReasonMalformed: "could not read it",
		semel.ReasonNoIdentity: "without an identity", reasonname.IdentityTooLong: "without an identity",
	} {
		inbox := newParkedInbox(1)
		inbox.rows[0].Surrogate, inbox.rows[0].Reason = true, reason
		for r, err := range (Box{Inbox: inbox, Requeuer: inbox}).Carry(t.Context(), Order{Verb: admin.Retry}) {
			if err != nil || r.Result != Refused || r.Reason != reason || !strings.HasPrefix(r.Error, string(reason)+": ") || !strings.Contains(r.Error, remedy) {
				t.Errorf("%s: %+v, %v", reason, r, err)
			}
		}
	}
}

func TestARetryOfARowWithAnUnknownOutcomeSaysToResolveIt(t *testing.T) {
	for _, state := range []store.RowState{store.StateParked, store.StateDeadLettered} {
		f := newParkedInbox(1)
		f.rows[0].State, f.rows[0].Reason, f.rows[0].CallsStarted = state, semel.ReasonOutcomeUnknown, 1
		for r, err := range (Box{Inbox: f, Requeuer: f}).Carry(t.Context(), Order{Verb: admin.Retry}) {
			if err != nil || r.Result != Refused || !strings.Contains(r.Error, "semel messages resolve") || len(f.acts) > 0 {
				t.Errorf("%s: %+v, %v", state, r, err)
			}
		}
	}
}

func TestTheStatesInWhichACommandIsAllowed(t *testing.T) {
	want := map[admin.Verb][]store.RowState{
		admin.Retry:   {store.StateReceived, store.StateFailedRetryable, store.StateParked, store.StateDeadLettered},
		admin.Release: {store.StateReceived, store.StateInProgress},
		admin.Discard: {store.StateReceived, store.StateInProgress, store.StateFailedRetryable, store.StateBlocked, store.StateParked, store.StateDeadLettered},
	}
	all := []store.RowState{store.StateReceived, store.StateInProgress, store.StateFailedRetryable, store.StateCompleted,
		store.StateParked, store.StateDeadLettered, store.StateDiscarded, store.StateBlocked, "FUTURE"}
	for verb, allowed := range want {
		for _, state := range all {
			f := newParkedInbox(1)
			f.rows[0].State = state
			result := carry(t, f, Order{Verb: verb})[0]
			if done := result != "1 refused"; done != slices.Contains(allowed, state) || done != (len(f.acts) == 1) {
				t.Errorf("%s of a row that is %s: %s, %d acts", verb, state, result, len(f.acts))
			}
		}
	}
}

func TestARetryOfAReceivedRow(t *testing.T) {
	t.Run("trap_T113_one_that_is_due_needs_none_and_one_that_is_dated_ahead_is_made_due", func(t *testing.T) {
		due, later := "refused: it is waiting: it is due now, and a running consumer will process it", Due+": "
		for _, dry := range []bool{false, true} {
			f := newParkedInbox(2)
			f.rows[0].State, f.rows[1].State = store.StateReceived, store.StateReceived
			f.rows[1].DueAt = time.Now().Add(24 * time.Hour)
			f.requeueErrors = map[int64]error{1: admin.MayAct(admin.RowRetried, &f.rows[0], true)}
			var got []string
			for r, err := range (Box{Inbox: f, Requeuer: f}).Carry(t.Context(), Order{Verb: admin.Retry, DryRun: dry, Filter: store.RowFilter{Numbers: []int64{1, 2}}}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r.Result+": "+r.Error)
			}
			want := []string{due, later}
			if dry {
				want[1] = Would + ": "
			}
			if !slices.Equal(got, want) {
				t.Errorf("dry run %v: got %q, want %q", dry, got, want)
			}
		}
	})
}

func TestARetriedRowWaitsForAMissingVersion(t *testing.T) {
	t.Run("B9_a_retry_of_what_is_still_too_early_waits_and_has_not_failed", func(t *testing.T) {
		f := newParkedInbox(1)
		f.rows[0].State = store.StateBlocked
		if fate, why, ended := replayResult(f.rows[0], maxRetryDelay); !ended || fate != FateWaits || !strings.Contains(why, "for an earlier version of its stream") {
			t.Errorf("%v, %q, %v", fate, why, ended)
		}
	})
}

func TestTheResultsOfRetries(t *testing.T) {
	f := newParkedInbox(6)
	at := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for i, state := range []store.RowState{store.StateCompleted, store.StateFailedRetryable, store.StateFailedRetryable, store.StateParked, store.StateInProgress,
		store.StateDiscarded} {
		f.rows[i].State, f.rows[i].LastError, f.rows[i].Attempts = state, "no such account", 3
		f.rows[i].ChangedAt, f.rows[i].DueAt = at, at
	}
	f.rows[2].DueAt = at.Add(90 * time.Second)
	var lines []string
	for _, r := range f.rows {
		result, why := retryResult(r)
		lines = append(lines, result+": "+why)
	}
	want := []string{"done: ", "due now: ", "waits: for 1m30s after attempt 3: no such account", "failed: no such account", "due now: ",
		"discarded: no such account"}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}
