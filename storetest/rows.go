package storetest

import (
	"bytes"
	"reflect"
	"strings"
	"time"

	"github.com/semel-go/semel"
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

// park delivers a message that is set aside, and returns its row.
func (h *fixture[Tx]) park(id string) store.StoredRow {
	h.t.Helper()
	return h.put(id, store.Row{State: store.StateParked, Reason: semel.ReasonPermanent, Message: &semel.Message{Body: []byte(id)}})
}

// put delivers a message with a row, marked as the row's state says.
func (h *fixture[Tx]) put(id string, r store.Row) store.StoredRow {
	h.t.Helper()
	m := h.print(id, 1)
	m.As = r.State.Outcome()
	b, v := h.begin(m)
	h.wantKinds(v, fresh)
	h.commit(b, store.Ending{Rows: []store.Row{r}})
	return h.row(id, false)
}

// row is the row of this identity, or the conflict's.
func (h *fixture[Tx]) row(id string, conflict bool) store.StoredRow {
	h.t.Helper()
	for _, r := range h.list(store.RowFilter{IDs: []string{id}}) {
		if r.Conflict == conflict {
			return r
		}
	}
	h.t.Fatalf("there is no row of %.40q (conflict: %t)", id, conflict)
	return store.StoredRow{}
}

// anyBytes is a message with everything that stores have mangled.
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

// rows are the laws of inbox rows.
func (s suite[Tx]) rows(t *T) {
	t.Run("a_row_is_written_with_its_commit_only",
		"A row and its marker become visible in one commit; a rollback and a killed batch leave none.",
		func(t *T) {
			h := s.opened(t)
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

// messages are the laws of what a row keeps of its message.
func (s suite[Tx]) messages(t *T) {
	t.Run("trap_83_a_message_comes_back_byte_for_byte",
		"Body, key, headers and attributes of a row are the bytes that came, in their order.",
		func(t *T) { s.byteForByte(t, anyBytes()) })
	t.Run("trap_80_a_message_of_nothing_comes_back_as_it_was",
		"What a message does not have its row does not have.",
		func(t *T) { s.byteForByte(t, &semel.Message{}) })
	t.Run("trap_81_a_row_of_any_identity_tells_the_identity",
		"The row of an identity of any bytes and length shows that identity and is found by it.",
		func(t *T) {
			h := s.opened(t)
			for _, id := range ids() {
				r := h.put(id, store.Row{State: store.StateParked, Message: &semel.Message{}})
				if want := (semel.Key{Consumer: "billing", Source: "shop", ID: id}); r.Key != want {
					t.Errorf("the row's key is %.80q, want %.80q", r.Key, want)
				}
			}
		})
	t.Run("a_row_keeps_what_is_known_of_its_failure",
		"Attempts, errors, fingerprint and surrogate are kept; errors are cut to what a row takes.",
		func(t *T) {
			h := s.opened(t)
			long := strings.Repeat("ä", store.MaxErrorText)
			r := h.put("a", store.Row{State: store.StateParked, Attempts: 7, FirstError: "first", LastError: long, Surrogate: true, Message: &semel.Message{}})
			if r.Attempts != 7 || r.FirstError != "first" || r.LastError != long[:store.MaxErrorText] || !r.Surrogate || r.Fingerprint != h.print("a", 1).Fingerprint {
				t.Errorf("the row is %+v", r)
			}
		})
}

// lists are the laws of showing rows.
func (s suite[Tx]) lists(t *T) {
	t.Run("copies_of_a_parked_message_are_counted_on_its_row",
		"A further delivery changes only the count, the revision and the time of its row.",
		func(t *T) {
			h := s.opened(t)
			before := h.park("a")
			for range 3 {
				b, v := h.begin(h.print("a", 1))
				h.wantKinds(v, already(store.Parked))
				h.commit(b, store.Ending{Rows: []store.Row{{Repeat: true}}})
			}
			after := h.row("a", false)
			if after.Repeated != 3 || after.State != before.State || after.Number != before.Number || len(h.list(store.RowFilter{})) != 1 {
				t.Errorf("after three copies the row is %+v", after)
			}
		})
	if !s.h.Can.OneConsumer {
		t.Run("rows_are_chosen_by_filter_and_paged_by_number",
			"A filter chooses the rows that match all its fields, ascending, up to its limit.",
			func(t *T) { s.filters(t) })
	}
	t.Run("trap_18_an_unreadable_row_hides_no_other",
		"A row that cannot be read whole is shown with what could be read and says so; the others are shown as ever.",
		func(t *T) {
			h := s.opened(t)
			if h.Damage == nil {
				t.lacks("Instance.Damage")
			}
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
	h := s.opened(t)
	t.wantMessage(h.put("a", store.Row{State: store.StateParked, Reason: "r", Message: m}).Message, *m)
}

// wantMessage compares a message that came back with the one that went in.
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

func (s suite[Tx]) filters(t *T) {
	h := s.opened(t)
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
			t.Errorf("the filter %+v chooses %q, want %q", f, got, want)
		}
	}
	rows, err := h.inbox().Rows(t.context(), store.RowFilter{Limit: 1})
	t.must(err)
	if rows[0].Message.Body != nil || rows[0].Size != len("body") {
		t.Errorf("a row without body has %q of size %d", rows[0].Message.Body, rows[0].Size)
	}
}
