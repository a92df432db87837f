package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestALookAtRowsInPages(t *testing.T) {
	db := openFile(t, newFile(t), pragmas)
	s := storeOn(t, db)
	scope, err := s.Scope(t.Context(), "billing", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Scope(t.Context(), "audit", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	// The test covers rows that wait although their markers do not have the state "waiting".
	states := []store.RowState{store.StateReceived, store.StateInProgress, store.StateFailedRetryable, store.StateBlocked, store.StateCompleted}
	for i := range 15 {
		of := scope
		if i%3 == 2 {
			of = other
		}
		if _, err := db.Exec(`insert into semel_inbox (revision, scope, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, started, finished, repeated, first_error, last_error)
values (1, ?, ?, x'', 0, 0, ?, '', '', 0, 0, '', '', '', '{}', x'', 0, 0, 0, 0, 0, '', '')`, of, []byte{0, byte(i)}, string(states[i%len(states)])); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("K3_law_12_finds_the_same_whatever_a_page_has", func(t *testing.T) {
		for _, most := range []int{100, 15, 14, 5, 2, 1} {
			var found []int64
			var after, rows int64
			for {
				looked, err := s.Denials(t.Context(), "billing", after, most)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range looked.Denied {
					found = append(found, d.Row)
				}
				if rows += looked.Rows; looked.Rows == 0 {
					break
				}
				after = looked.Last
			}
			slices.Sort(found)
			if want := []int64{1, 2, 4, 5, 7, 8, 10, 11, 13, 14}; !slices.Equal(found, want) || rows != 15 || after != 15 {
				t.Errorf("in pages of %d: %v, up to %d of %d rows", most, found, after, rows)
			}
		}
	})
}

// newDeniedStore returns a store with records of a consumer that uses versions. The messages m1 and m2 of a stream
// took effect, and m4 waits for an earlier version. Each applied message wrote an intent.
func newDeniedStore(t *testing.T) (*sqlstore.Store, *sql.DB) {
	t.Helper()
	db := openFile(t, newFile(t), pragmas)
	s := storeOn(t, db)
	intents, err := consumer.NewIntents(s)
	if err != nil {
		t.Fatal(err)
	}
	c, err := consumer.New(s, func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
		return intents.Write(ctx, tx, m, semel.Intent{To: "mailer", Purpose: "told"})
	}, consumer.Config{Name: "billing", Identity: identity.By("header:id"), Logger: slog.New(slog.DiscardHandler),
		Version: &consumer.VersionPolicy{By: identity.Stream("body:/order").At("body:/version")}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.WithoutCancel(t.Context()))
	var all []*semel.Message
	for _, version := range []int{1, 2, 4} {
		all = append(all, &semel.Message{Headers: semel.Headers{{Name: "id", Value: fmt.Appendf(nil, "m%d", version)}}, Body: fmt.Appendf(nil, `{"order":"a","version":%d}`, version)})
	}
	if _, err := c.ProcessAll(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	return s, db
}

func TestWhatNoCommitWritesIsDenied(t *testing.T) {
	const marker = "update semel_markers set outcome = %d where cast(substr(id, 2) as text) = 'm1'"
	// The statement changes the waiting row so that the row seems to belong to a message that wrote an intent.
	became := "update semel_inbox set state = 'PARKED', stream = null, id = (select id from semel_markers where cast(substr(id, 2) as text) = 'm1') where state = 'BLOCKED'; " + fmt.Sprintf(marker, store.Parked)
	stream := sqlstore.Mismatch{State: store.StateBlocked, By: sqlstore.MismatchStream}
	intent := sqlstore.Mismatch{State: store.StateReceived, By: sqlstore.MismatchCause, Cause: semel.Key{Consumer: "billing", ID: "m1"}}
	with := func(d sqlstore.Mismatch, change func(*sqlstore.Mismatch)) []sqlstore.Mismatch {
		change(&d)
		return []sqlstore.Mismatch{d}
	}
	for name, c := range map[string]struct {
		plant string
		want  []sqlstore.Mismatch
	}{
		"K3_law_12_nothing_where_nothing_was_changed": {"select 1", nil},
		"K3_law_12_who_waits_for_what_its_stream_has_passed": {"update semel_streams set last = 3",
			with(stream, func(d *sqlstore.Mismatch) { d.Last = 3 })},
		"K3_law_12_nobody_who_waits_for_the_next": {"update semel_streams set last = 2", nil},
		"K3_law_12_who_is_parked_for_what_has_come": {"update semel_streams set last = 4; update semel_inbox set state = 'PARKED', reason = 'gap' where state = 'BLOCKED'; update semel_markers set outcome = 3 where outcome = 2 and cast(substr(id, 2) as text) = 'm4'",
			with(stream, func(d *sqlstore.Mismatch) { d.State, d.Last = store.StateParked, 4 })},
		"K3_law_12_who_took_effect_and_its_stream_is_behind": {"update semel_inbox set state = 'COMPLETED' where state = 'BLOCKED'; update semel_markers set outcome = 1 where cast(substr(id, 2) as text) = 'm4'",
			with(stream, func(d *sqlstore.Mismatch) { d.State, d.Last = store.StateCompleted, 2 })},
		"K3_law_12_who_took_effect_and_its_stream_is_gone": {"update semel_inbox set state = 'COMPLETED' where state = 'BLOCKED'; update semel_markers set outcome = 1 where cast(substr(id, 2) as text) = 'm4'; delete from semel_streams",
			with(stream, func(d *sqlstore.Mismatch) { d.State, d.Last = store.StateCompleted, -1 })},
		"K3_law_12_an_intent_whose_message_is_not_marked": {"delete from semel_markers where cast(substr(id, 2) as text) = 'm1'",
			with(intent, func(*sqlstore.Mismatch) {})},
		"K3_law_12_no_intent_whose_message_may_have_been_removed":            {"delete from semel_markers where cast(substr(id, 2) as text) = 'm1'; update semel_scopes set low = (unixepoch() - 60) * 1000", nil},
		"K3_law_12_no_intent_whose_message_came_again_when_it_was_forgotten": {became + "; update semel_scopes set low = (unixepoch() - 60) * 1000", nil},
		"K3_law_12_no_intent_that_was_sent_again_after_its_time":             {"delete from semel_markers where cast(substr(id, 2) as text) = 'm1'; update semel_scopes set low = (unixepoch() - 7200) * 1000; update semel_inbox set emitted_at = received_at where state = 'RECEIVED'", nil},
		"K3_law_12_an_intent_whose_message_is_parked": {fmt.Sprintf(marker, store.Parked),
			with(intent, func(d *sqlstore.Mismatch) { d.Marker = store.Parked })},
		"K3_law_12_an_intent_whose_message_is_set_aside_as_its_row_says": {became, with(intent, func(d *sqlstore.Mismatch) { d.Marker = store.Parked })},
		"K3_law_12_no_intent_of_a_message_whose_steps_took_effect":       {became + `; update semel_inbox set steps = '[{"name":"told"}]' where state = 'PARKED'`, nil},
		"K3_law_12_no_intent_of_a_message_that_was_called":               {became + "; update semel_inbox set calls_started = 1 where state = 'PARKED'", nil},
		"K3_law_12_no_intent_for_another_content_of_its_message":         {fmt.Sprintf(marker, store.DeadLettered) + "; " + strings.ReplaceAll(became, "stream = null", "stream = null, conflict = x'01'") + "; " + fmt.Sprintf(marker, store.DeadLettered), nil},
		"K3_law_12_nobody_who_is_parked_for_another_reason":              {"update semel_streams set last = 4; update semel_inbox set state = 'PARKED', reason = 'poison' where state = 'BLOCKED'; update semel_markers set outcome = 3 where outcome = 2 and cast(substr(id, 2) as text) = 'm4'", nil},
		"K3_law_12_no_other_content_whatever_its_version":                {"update semel_streams set last = 3; update semel_inbox set conflict = x'01' where state = 'BLOCKED'", nil},
		"K3_law_12_once_whom_both_deny": {"update semel_streams set last = 3; update semel_markers set outcome = 1 where cast(substr(id, 2) as text) = 'm4'",
			with(stream, func(d *sqlstore.Mismatch) { d.By, d.Marker = sqlstore.MismatchMarker, store.Applied })},
		"K3_law_12_no_intent_whose_message_has_ended_without_a_row":          {fmt.Sprintf(marker, store.DeadLettered), nil},
		"K3_law_12_nobody_knows_the_message_of_an_intent_without_its_header": {"delete from semel_markers where cast(substr(id, 2) as text) = 'm1'; update semel_inbox set envelope = '{}'", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := newDeniedStore(t)
			exec(t, db, c.plant)
			found, err := s.Denials(t.Context(), "billing", 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			for i := range found.Denied {
				found.Denied[i].Row = 0
			}
			if !slices.Equal(found.Denied, c.want) {
				t.Errorf("%+v, want %+v", found.Denied, c.want)
			}
			if found.Rows != 3 {
				t.Errorf("%d rows", found.Rows)
			}
			if other, err := s.Denials(t.Context(), "mailer", 0, 100); err != nil || len(other.Denied) > 0 {
				t.Errorf("of another consumer: %+v, %v", other, err)
			}
		})
	}
}
