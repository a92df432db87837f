package storetest

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

func (h *fixture[Tx]) inbox() store.Inbox { return h.Store.(store.Inbox) }

func (h *fixture[Tx]) list(f store.RowFilter) []store.StoredRow {
	h.t.Helper()
	f.Bodies = true
	rows, err := h.inbox().Rows(h.t.context(), f)
	h.t.must(err)
	return rows
}

// park delivers a message, parks it, and returns the message's row.
func (h *fixture[Tx]) park(id string) store.StoredRow {
	h.t.Helper()
	return h.put(id, store.Row{State: store.StateParked, Reason: semel.ReasonPermanent, Message: &semel.Message{Body: []byte(id)}})
}

// put delivers a message with the given row and with the mark that the row's state requires.
func (h *fixture[Tx]) put(id string, r store.Row) store.StoredRow {
	h.t.Helper()
	m := h.contentMark(id, 1)
	m.As = r.State.Outcome()
	b, v := h.begin(m)
	h.wantKinds(v, fresh)
	h.commit(b, store.Ending{Rows: []store.Row{r}})
	return h.rowOfIdentity(id, false)
}

// rowOfIdentity returns the row of an identity or, if conflict is true, the row of its conflict.
func (h *fixture[Tx]) rowOfIdentity(id string, conflict bool) store.StoredRow {
	h.t.Helper()
	for _, r := range h.list(store.RowFilter{IDs: []string{id}}) {
		if r.Conflict == conflict {
			return r
		}
	}
	h.t.Fatalf("there is no row of %.40q (conflict: %t)", id, conflict)
	return store.StoredRow{}
}

func (h *fixture[Tx]) wantState(what string, r store.StoredRow, want store.RowState) {
	h.t.Helper()
	if r.State != want {
		h.t.Errorf("%s is %s, want %s: %+v", what, r.State, want, r)
	}
}

// anyBytes returns a message with every kind of bytes that a store has been known to corrupt.
func anyBytes() *semel.Message {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	return &semel.Message{
		Topic: "to\x00pic\xff",
		Key:   every,
		Headers: semel.Headers{
			{Name: "b", Value: every}, {Name: "a", Value: []byte{}}, {Name: "b", Value: []byte("again")},
			{Name: "näme\x00\xfe", Value: []byte("\xed\xa0\x80")}, {Name: "ce-type", Value: []byte("paid")},
		},
		Body: append([]byte("{\"a\": 1,  \"a\":2, \"x\":\"\\ud800\", \"n\":1e400000}\x00"), every...),
		Attributes: semel.Attributes{
			ID: "\xff\x00", Source: "ü", Subject: "e\u0301 ", DataSchema: "v1",
			Time: time.Date(2026, 2, 3, 4, 5, 6, 789012345, time.FixedZone("", 3600)),
		},
		Origin: semel.Origin{Partition: 1<<31 - 1, Offset: 1<<62 + 1, BrokerID: "\xc3\x28", Written: 1769999999},
	}
}

func (s suite[Tx]) testRows(t *T) {
	s.run(t, "a_row_is_written_with_its_commit_only",
		"A row and its marker become visible in one commit; a rollback and a killed batch leave neither.", func(t *T, h *fixture[Tx]) {
			m := h.mark("a")
			m.As = store.Parked
			b, _ := h.begin(m)
			b.Rollback(t.context())
			if rows := h.list(store.RowFilter{}); len(rows) != 0 {
				t.Errorf("%d rows after a rollback", len(rows))
			}
			r := h.park("a")
			h.wantKinds(h.asks(h.mark("a")), already(store.Parked))
			if r.Revision == 0 || r.Number == 0 || r.State != store.StateParked || r.Reason != semel.ReasonPermanent || r.ReceivedAt.IsZero() {
				t.Errorf("the row is %+v", r)
			}
		})
}

// testMessages tests that a row contains its message unchanged.
func (s suite[Tx]) testMessages(t *T) {
	t.Run("trap_83_a_message_comes_back_byte_for_byte", "Body, key, headers and attributes of a row are the bytes that arrived, in the same order.", func(t *T) { s.byteForByte(t, anyBytes()) })
	t.Run("trap_80_an_empty_message_comes_back_empty", "A field that a message does not have is missing in its row too.", func(t *T) { s.byteForByte(t, &semel.Message{}) })
	s.run(t, "trap_81_a_row_returns_any_identity",
		"The row of an identity of any bytes and length returns that identity and is found by it.", func(t *T, h *fixture[Tx]) {
			for _, id := range ids() {
				r := h.put(id, store.Row{State: store.StateParked, Message: &semel.Message{}})
				if want := (semel.Key{Consumer: "billing", Source: "shop", ID: id}); r.Key != want {
					t.Errorf("the row's key is %.80q, want %.80q", r.Key, want)
				}
			}
		})
	s.run(t, "a_row_keeps_its_attempts_and_errors",
		"Attempts, errors, fingerprint and surrogate are kept; errors are cut to the length that a row allows.", func(t *T, h *fixture[Tx]) {
			long := strings.Repeat("ä", store.MaxErrorText)
			r := h.put("a", store.Row{State: store.StateParked, Attempts: 7, FirstError: "first", LastError: long, Surrogate: true, Message: &semel.Message{}})
			if r.Attempts != 7 || r.FirstError != "first" || r.LastError != long[:store.MaxErrorText] || !r.Surrogate || r.Fingerprint != h.contentMark("a", 1).Fingerprint {
				t.Errorf("the row is %+v", r)
			}
		})
}

func (s suite[Tx]) testLists(t *T) {
	s.run(t, "copies_of_a_parked_message_are_counted_on_its_row",
		"A repeated delivery changes only the count, the revision and the time of its row.", func(t *T, h *fixture[Tx]) {
			before := h.park("a")
			for range 3 {
				b, v := h.begin(h.contentMark("a", 1))
				h.wantKinds(v, already(store.Parked))
				h.commit(b, store.Ending{Rows: []store.Row{{Repeat: true}}})
			}
			after := h.rowOfIdentity("a", false)
			if after.Repeated != 3 || after.State != before.State || after.Number != before.Number || len(h.list(store.RowFilter{})) != 1 {
				t.Errorf("after three copies the row is %+v", after)
			}
		})
	if !s.h.Can.OneConsumer {
		s.run(t, "rows_are_chosen_by_filter_and_paged_by_number", "A filter returns the rows that match all its fields, in ascending order, up to its limit.", s.filters)
	}
	s.run(t, "trap_18_an_unreadable_row_hides_no_other",
		"A row that can be read only in part is listed with the readable fields and an error; other rows are listed as usual.", func(t *T, h *fixture[Tx]) {
			t.needs("Instance.Damage", h.Damage != nil)
			h.park("a")
			h.Damage(t, h.park("b").Number)
			h.park("c")
			rows := h.list(store.RowFilter{})
			if len(rows) != 3 {
				t.Fatalf("%d rows of 3 are shown", len(rows))
			}
			if rows[1].LastError == "" || rows[1].Key.ID != "b" || string(rows[2].Message.Body) != "c" || rows[2].LastError != "" {
				t.Errorf("the rows are %+v", rows)
			}
		})
}

func (s suite[Tx]) byteForByte(t *T, m *semel.Message) {
	h := s.open(t)
	t.wantMessage(h.put("a", store.Row{State: store.StateParked, Reason: "r", Message: m}).Message, *m)
}

// wantMessage compares a stored message with the original message.
func (t *T) wantMessage(got *semel.Message, want semel.Message) {
	t.Helper()
	if !bytes.Equal(got.Body, want.Body) || !bytes.Equal(got.Key, want.Key) || (got.Key == nil) != (want.Key == nil) {
		t.Errorf("body or key are %q, %q", got.Body, got.Key)
	}
	if !got.Attributes.Time.Equal(want.Attributes.Time) {
		t.Errorf("the time is %v, want %v", got.Attributes.Time, want.Attributes.Time)
	}
	got.Body, got.Key, got.Attributes.Time = want.Body, want.Key, want.Attributes.Time
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("the message is\n%+v, want\n%+v", *got, want)
	}
}

func (s suite[Tx]) filters(t *T, h *fixture[Tx]) {
	typed := &semel.Message{Attributes: semel.Attributes{Type: "paid"}, Body: []byte("body")}
	h.put("a", store.Row{State: store.StateParked, Reason: "r1", Message: typed})
	h.put("b", store.Row{State: store.StateDiscarded, Reason: "r2", Message: typed})
	h.scope = h.scopeOf("shipping", "shop", 0)
	h.put("a", store.Row{State: store.StateParked, Reason: "r2", Message: &semel.Message{}})
	all := h.list(store.RowFilter{})
	if len(all) != 3 {
		t.Fatalf("%d rows, want 3", len(all))
	}
	for want, f := range map[string]store.RowFilter{
		"ab":  {Consumer: "billing"},
		"aa":  {IDs: []string{"a"}},
		"b":   {States: []store.RowState{store.StateDiscarded, store.StateCompleted}},
		"ba":  {Reason: "r2"},
		"ab ": {Type: "paid"},
		"a":   {Consumer: "shipping"},
		"a ":  {Numbers: []int64{all[0].Number}},
		"":    {ReceivedBefore: all[0].ReceivedAt},
		"aba": {ReceivedBefore: all[2].ReceivedAt.Add(time.Hour)},
		"ba ": {After: all[0].Number},
		"a  ": {Limit: 1},
		" ":   {IDs: []string{"a"}, Reason: "r1", Consumer: "shipping"},
	} {
		got := ""
		for _, r := range h.list(f) {
			got += r.Key.ID
		}
		if got != strings.TrimSpace(want) {
			t.Errorf("the filter %+v returns %q, want %q", f, got, want)
		}
	}
	rows, err := h.inbox().Rows(t.context(), store.RowFilter{Limit: 1})
	t.must(err)
	if rows[0].Message.Body != nil || rows[0].Size != len("body") {
		t.Errorf("a row without body has %q of size %d", rows[0].Message.Body, rows[0].Size)
	}
}

// pairs maps each state and each event to the state that follows. An event that is not listed for a state must
// change nothing.
var pairs = map[store.RowState]map[admin.RowEvent]store.RowState{
	store.StateReceived: {
		admin.RowClaimed:   store.StateInProgress,
		admin.RowDiscarded: store.StateDiscarded,
	},
	store.StateInProgress: {
		admin.RowClaimed:      store.StateInProgress, // when its lease has expired
		admin.RowCompleted:    store.StateCompleted,
		admin.RowFailed:       store.StateFailedRetryable,
		admin.RowParked:       store.StateParked,
		admin.RowDeadLettered: store.StateDeadLettered,
		admin.RowDiscarded:    store.StateDiscarded,
		admin.RowReleased:     store.StateReceived,
		admin.RowStepped:      store.StateReceived,
		admin.RowBlocked:      store.StateBlocked,
	},
	store.StateBlocked: { // streams.go tests what unblocks it
		admin.RowClaimed:   store.StateInProgress, // when it has waited long enough
		admin.RowDiscarded: store.StateDiscarded,
	},
	store.StateFailedRetryable: {
		admin.RowClaimed:   store.StateInProgress, // when its next attempt is scheduled for now or earlier
		admin.RowRetried:   store.StateFailedRetryable,
		admin.RowDiscarded: store.StateDiscarded,
	},
	store.StateParked: {
		admin.RowRetried:   store.StateFailedRetryable,
		admin.RowDiscarded: store.StateDiscarded,
	},
	store.StateDeadLettered: {
		admin.RowRetried:   store.StateFailedRetryable,
		admin.RowDiscarded: store.StateDiscarded,
	},
	store.StateCompleted: {},
	store.StateDiscarded: {},
}

// testTransitions tests every pair of a state and an event.
func (s suite[Tx]) testTransitions(t *T) {
	for state, after := range pairs {
		s.run(t, "D4_law_5_each_event_in_each_state/"+state.String(),
			"An event that is not allowed in a row's state, or that comes under an old token, changes neither row nor marker; any other event changes both.", func(t *T, h *fixture[Tx]) {
				for event := admin.RowClaimed; event <= admin.RowBlocked; event++ {
					c, id := h.in(state, event), state.String()+event.String()
					before := h.number(c.Number)
					want, legal := after[event]
					if !legal {
						want = state
					}
					if happened := h.happens(event, before, c); happened != legal {
						t.Errorf("%s in %s happened: %t", event, state, happened)
					}
					r := h.number(c.Number)
					if r.State != want || !legal && r.Revision != before.Revision {
						t.Errorf("%s in %s: the row is %+v, want %s", event, state, r, want)
					}
					h.wantOutcome(id, want.Outcome())
				}
			})
	}
}

// The method in brings a new row into a state, and returns the row's current or last claim.
func (h *fixture[Tx]) in(state store.RowState, event admin.RowEvent) store.Claim {
	h.t.Helper()
	n := h.receive(state.String()+event.String(), 0, nil).Number
	lease := long
	if event == admin.RowClaimed {
		lease = brief // the lease must have expired when the row is claimed again
	}
	got := h.takes(n, lease)
	if len(got) != 1 {
		h.t.Fatalf("claimed %+v", got)
	}
	if state == store.StateInProgress {
		return got[0].Claim
	}
	wait := long
	if event == admin.RowClaimed {
		wait = 0 // so that the row can be claimed now
	}
	if state == store.StateReceived {
		wait = 0
	}
	lost, err := h.leases().End(h.t.context(), []store.ClaimEnding{{Claim: got[0].Claim, State: state, After: wait}})
	h.t.must(err)
	if len(lost) != 0 {
		h.t.Fatal("the claim is lost")
	}
	return got[0].Claim
}

func (h *fixture[Tx]) takes(number int64, lease time.Duration) []store.Claimed {
	h.t.Helper()
	got, err := h.leases().Claim(h.t.context(), store.ClaimOptions{Consumer: "billing", Token: store.NewToken(), Numbers: []int64{number}, Most: 1, Lease: lease})
	h.t.must(err)
	return got
}

// happens applies an event to a row, and reports whether the store accepted the event. The parameter seen is the row as
// it was read before the event.
func (h *fixture[Tx]) happens(event admin.RowEvent, seen store.StoredRow, c store.Claim) bool {
	h.t.Helper()
	person := func(do func() error) bool {
		err := do()
		if err != nil && !errors.Is(err, semel.ErrState) {
			h.t.Errorf("%s returned %v, want nil or ErrState", event, err)
		}
		return err == nil
	}
	switch {
	case event == admin.RowClaimed:
		if seen.State == store.StateInProgress {
			h.again(seen.Number)
			return true
		}
		return len(h.takes(seen.Number, long)) == 1
	case event == admin.RowRetried:
		return person(func() error { return h.retry(seen.Seen()) })
	case event == admin.RowDiscarded && seen.State != store.StateInProgress:
		return person(func() error { return h.discard(seen.Seen()) })
	case event == admin.RowReleased && seen.State != store.StateInProgress:
		if person(func() error { return h.release(seen.Seen()) }) {
			return true
		}
	}
	lost, err := h.leases().End(h.t.context(), []store.ClaimEnding{{Claim: c, State: pairs[store.StateInProgress][event]}})
	h.t.must(err)
	return len(lost) == 0
}

// again waits until the lease of a row has expired, and then claims the row.
func (h *fixture[Tx]) again(number int64) {
	h.t.Helper()
	for ctx := h.t.context(); ctx.Err() == nil; time.Sleep(brief) {
		if len(h.takes(number, long)) == 1 {
			return
		}
	}
	h.t.Fatalf("row %d cannot be claimed again", number)
}
