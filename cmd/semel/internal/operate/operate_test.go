package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
)

// fakeInbox is an inbox in memory.
type fakeInbox struct {
	rows []contract.StoredRow
	acts []contract.Act
}

func (f *fakeInbox) Rows(_ context.Context, filter contract.RowFilter) ([]contract.StoredRow, error) {
	var found []contract.StoredRow
	for _, r := range f.rows {
		chosen := r.Number > filter.After && (len(filter.Numbers) == 0 || slices.Contains(filter.Numbers, r.Number)) &&
			(len(filter.States) == 0 || slices.Contains(filter.States, r.State))
		if chosen && len(found) < filter.Limit {
			found = append(found, r)
		}
	}
	return found, nil
}

func (f *fakeInbox) Discard(_ context.Context, number, revision int64, a contract.Act) error {
	for i := range f.rows {
		if r := &f.rows[i]; r.Number == number {
			if r.Revision != revision {
				return semel.ErrChanged
			}
			r.State, r.Revision = contract.StateDiscarded, revision+1
			f.acts = append(f.acts, a)
		}
	}
	return nil
}

func (f *fakeInbox) FailRetry(context.Context, int64, int64, string, contract.Act) error { return nil }

func (f *fakeInbox) Acts(context.Context, int64, int) ([]contract.Act, error) { return f.acts, nil }

// parked makes n parked rows of the consumer billing.
func parked(n int) *fakeInbox {
	f := &fakeInbox{}
	for i := range n {
		key := semel.Key{Consumer: "billing", ID: fmt.Sprintf("p-%d", i+1)}
		f.rows = append(f.rows, contract.StoredRow{Number: int64(i + 1), Revision: 1, Key: key, State: contract.StateParked})
	}
	return f
}

func carry(t *testing.T, f *fakeInbox, o Order) []string {
	t.Helper()
	var results []string
	for r, err := range (Box{Store: "shop", Inbox: f}).Carry(context.Background(), o) {
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, fmt.Sprintf("%d %s", r.Number, r.Result))
	}
	return results
}

func TestAnOrderIsCarriedOutRowByRowOverManyPages(t *testing.T) {
	f := parked(3*page + 1)
	results := carry(t, f, Order{Verb: Discard, Filter: contract.RowFilter{States: []contract.RowState{contract.StateParked}}, Who: "ann", Why: "test data"})
	if len(results) != 3*page+1 || len(f.acts) != len(results) {
		t.Fatalf("%d results, %d acts", len(results), len(f.acts))
	}
	if a := f.acts[0]; a.Who != "ann" || a.Why != "test data" || a.Verb != "discard" || a.Row != 1 {
		t.Errorf("the first act is %+v", a)
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	f := parked(2)
	results := carry(t, f, Order{Verb: Discard, DryRun: true})
	if !slices.Equal(results, []string{"1 would be done", "2 would be done"}) || len(f.acts) != 0 {
		t.Errorf("%v, %d acts", results, len(f.acts))
	}
}

func TestOneRowThatIsRefusedOrFailsDoesNotStopTheOthers(t *testing.T) {
	f := parked(6)
	f.rows[1].State = contract.StateDiscarded
	f.rows[2].Surrogate = true
	f.rows[3].Key.Consumer = "unknown"
	answers := map[int64]error{1: semel.ErrChanged, 5: fmt.Errorf("again: %w", semel.ErrConflict), 6: errors.New("still no such account")}
	handle := func(_ context.Context, r contract.StoredRow, _ contract.Act) error { return answers[r.Number] }
	order := Order{
		Verb:     Retry,
		Filter:   contract.RowFilter{Numbers: []int64{6, 5, 4, 3, 2, 1, 1, 99}},
		Handlers: map[string]func(context.Context, contract.StoredRow, contract.Act) error{"billing": handle},
	}
	want := []string{"1 refused", "2 refused", "3 refused", "4 refused", "5 refused", "6 failed", "99 refused"}
	if got := carry(t, f, order); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// markers are those of identities that are applied.
type markers map[string]bool

func (m markers) Marker(_ context.Context, key semel.Key) (contract.StoredMarker, bool, error) {
	return contract.StoredMarker{Outcome: semel.Applied}, m[key.ID], nil
}

func TestADryRunForeseesThatARetryIsRefused(t *testing.T) {
	f := parked(3)
	f.rows[0].Conflict, f.rows[0].Reason = true, semel.ReasonConflict
	f.rows[2].State, f.rows[2].Surrogate, f.rows[2].Reason = contract.StateDiscarded, true, semel.ReasonMalformed
	handle := func(_ context.Context, r contract.StoredRow, _ contract.Act) error {
		if r.Conflict {
			return fmt.Errorf("row %d: %w", r.Number, semel.ErrConflict)
		}
		return nil
	}
	box := Box{Store: "shop", Inbox: f, Markers: markers{"p-1": true}}
	for _, dry := range []bool{true, false} {
		order := Order{Verb: Retry, DryRun: dry, Handlers: map[string]func(context.Context, contract.StoredRow, contract.Act) error{"billing": handle}}
		done := map[bool]string{true: Would, false: Done}[dry]
		var got []string
		for r, err := range box.Carry(t.Context(), order) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, r.Result+": "+r.Error)
		}
		want := []string{
			"refused: row 1: another content of this identity is applied; find out from the producer which content is right, correct the effect by hand if it is this one, and discard this row",
			done + ": ",
			"refused: it is DISCARDED: the row's state does not allow this",
		}
		if !slices.Equal(got, want) {
			t.Errorf("dry run %v: got %q, want %q", dry, got, want)
		}
	}
}

func TestAnOrderEndsWithItsContext(t *testing.T) {
	f := parked(3)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var last error
	for _, err := range (Box{Inbox: f}).Carry(ctx, Order{Verb: Discard}) {
		last = err
		cancel()
	}
	if !errors.Is(last, context.Canceled) || len(f.acts) != 1 {
		t.Errorf("%v after %d acts", last, len(f.acts))
	}
}

func TestARowWithoutAnIdentityIsRefusedForItsOwnCause(t *testing.T) {
	for reason, remedy := range map[semel.Reason]string{
		semel.ReasonTooLarge: "raise max_body", semel.ReasonForeign: "correct only in the policy", semel.ReasonMalformed: "could not read it",
		semel.ReasonNoIdentity: "without an identity", semel.ReasonIdentityTooLong: "without an identity",
	} {
		inbox := parked(1)
		inbox.rows[0].Surrogate, inbox.rows[0].Reason = true, reason
		order := Order{Verb: Retry, Handlers: map[string]func(context.Context, contract.StoredRow, contract.Act) error{
			"billing": func(context.Context, contract.StoredRow, contract.Act) error { return errors.New("it ran") }}}
		for r, err := range (Box{Inbox: inbox}).Carry(t.Context(), order) {
			if err != nil || r.Result != Refused || r.Reason != reason || !strings.HasPrefix(r.Error, string(reason)+": ") || !strings.Contains(r.Error, remedy) {
				t.Errorf("%s: %+v, %v", reason, r, err)
			}
		}
	}
}
