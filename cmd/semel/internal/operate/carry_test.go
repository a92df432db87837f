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
	"github.com/semel-go/semel/store"
)

// failingMarkers returns a marker for the given number of reads and then fails.
type failingMarkers struct{ answers int }

func (f *failingMarkers) Marker(context.Context, semel.Key) (admin.StoredMarker, bool, error) {
	if f.answers--; f.answers < 0 {
		return admin.StoredMarker{}, false, errors.New("away")
	}
	return admin.StoredMarker{}, false, nil
}

func TestADryRunThatFailsReturnsNoResultForTheRest(t *testing.T) {
	f := newParkedInbox(4)
	var got []string
	var failed error
	for r, err := range (Box{Inbox: f, Requeuer: f, Markers: &failingMarkers{answers: 1}}).Carry(t.Context(), Order{Verb: admin.Retry, DryRun: true}) {
		if failed = err; err == nil {
			got = append(got, fmt.Sprintf("%d %s", r.Number, r.Result))
		}
	}
	if want := []string{"1 would be done"}; failed == nil || !slices.Equal(got, want) {
		t.Errorf("%v and %v, want %v and an error", got, failed, want)
	}
}

// releaseRecorder is an inbox that records the rows whose claims are ended.
type releaseRecorder struct {
	*fakeInbox
	released []int64
}

func (r *releaseRecorder) Release(ctx context.Context, a store.Act, rows ...store.RowRevision) []error {
	for _, row := range rows {
		r.released = append(r.released, row.Number)
	}
	return r.Requeue(ctx, a, rows...)
}

func TestReleaseEndsClaimsAndReportsEachRow(t *testing.T) {
	f := newParkedInbox(5)
	for i, state := range []store.RowState{store.StateReceived, store.StateInProgress, store.StateReceived, store.StateInProgress, store.StateReceived} {
		f.rows[i].State, f.rows[i].DueAt = state, time.Now().Add(time.Hour)
	}
	f.requeueErrors = map[int64]error{2: semel.ErrState, 5: errors.New("away")}
	box := &releaseRecorder{fakeInbox: f}
	var got []string
	for r, err := range (Box{Inbox: box, Requeuer: box}).Carry(t.Context(), Order{Verb: admin.Release}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d %s", r.Number, r.Result))
	}
	if want := []string{"1 done", "2 refused", "3 done", "4 done", "5 failed"}; !slices.Equal(got, want) || !slices.Equal(box.released, []int64{2, 4}) {
		t.Errorf("%v, want %v; released %v", got, want, box.released)
	}
}

func TestARetryReportsRowsThatWereDueBefore(t *testing.T) {
	f := newParkedInbox(1)
	f.rows[0].State, f.rows[0].DueAt = store.StateFailedRetryable, time.Now().Add(-time.Hour)
	f.requeueErrors = map[int64]error{1: admin.ErrDueAlready}
	box := Box{Inbox: f, Requeuer: f}
	var told []Result
	for r, err := range box.Carry(t.Context(), Order{Verb: admin.Retry}) {
		if told = append(told, r); err != nil || r.Result != Due || r.Error == "" {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	r := &replayRun{Replay: Replay{Verb: admin.Retry}, box: box, letters: []Letter{{Number: 1}}}
	if err := r.retryLetter(t.Context(), 0); err != nil || len(r.dueLetters) != 1 {
		t.Fatalf("%v, %v", r.dueLetters, err)
	}
	if ended, err := r.checkDue(t.Context()); err != nil || ended != 0 {
		t.Errorf("%+v, %v", r.letters, err)
	}
	f.rows[0].Revision++
	f.rows[0].State = store.StateCompleted
	if ended, err := r.checkDue(t.Context()); err != nil || ended != 1 || r.letters[0].Happened != FateApplied {
		t.Errorf("once it was applied: %+v, %v", r.letters, err)
	}
}

func TestTheAdviceForADiscardedConflictIsToLeaveItDiscarded(t *testing.T) {
	for state, want := range map[store.RowState]string{store.StateDiscarded: "leave this row discarded", store.StateParked: "discard this row"} {
		f := newParkedInbox(1)
		f.rows[0].State = state
		f.requeueErrors = map[int64]error{1: semel.ErrConflict}
		verb := admin.Retry
		if state == store.StateDiscarded {
			verb = admin.Reopen
		}
		for r, err := range (Box{Inbox: f, Requeuer: f}).Carry(t.Context(), Order{Verb: verb}) {
			if err != nil || r.Result != Refused || !strings.HasSuffix(r.Error, want) {
				t.Errorf("%s: %+v, %v", state, r, err)
			}
		}
	}
}
