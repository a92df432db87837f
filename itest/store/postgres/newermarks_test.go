package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// asNewer changes the constraints of the tables so that they accept outcomes and states of a newer release.
func (s *fixture) asNewer(t *testing.T) {
	s.exec(t, "alter table in.semel_markers drop constraint if exists known_outcomes")
	s.exec(t, "alter table in.semel_inbox drop constraint if exists known_states")
}

func TestMarkersAndRowsOfANewerRelease(t *testing.T) {
	db := newDatabase(t)
	t.Run("P1_a_message_that_a_newer_release_marked_is_held_and_its_neighbours_are_applied", func(t *testing.T) {
		for _, outcome := range []int{6, 9, 257, 0, -3} {
			s := newFixture(t, db, sqlstore.Options{})
			s.asNewer(t)
			s.attempt(t, s.makeMarks(t, "held"))
			s.exec(t, "update in.semel_markers set outcome = $1", outcome)
			s.heldAmongOthers(t, outcome)
		}
	})
	t.Run("P1_a_row_that_a_newer_release_wrote_is_shown_and_refused", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		s.asNewer(t)
		b, _ := s.begin(t, store.TxOptions{}, s.makeMarks(t, "1"))
		row := store.Row{State: store.StateParked, Message: &semel.Message{}}
		if r := b.Commit(t.Context(), store.Ending{Rows: []store.Row{row}}); r.Outcome != store.Committed {
			t.Fatal(r)
		}
		s.exec(t, "update in.semel_inbox set state = 'FUTURE'")
		rows, err := s.store.Rows(t.Context(), store.RowFilter{})
		if err != nil || len(rows) != 1 || rows[0].State != "FUTURE" || !strings.Contains(rows[0].LastError, "newer release") {
			t.Fatalf("%+v, %v", rows, err)
		}
		a := store.Act{Verb: "discard", Who: "ana"}
		retried := errors.Join(s.store.Requeue(t.Context(), a, rows[0].Seen())...)
		for _, err := range []error{retried, errors.Join(s.store.Discard(t.Context(), a, rows[0].Seen())...)} {
			if !errors.Is(err, semel.ErrState) || !strings.Contains(err.Error(), `the state "FUTURE", written by a newer release`) {
				t.Errorf("acted on: %v", err)
			}
		}
	})
}

// heldAmongOthers delivers the message "held" among other messages to a consumer. The marker of the message "held" has
// an outcome that only a newer release knows, until the newer release records the outcome applied.
func (s *fixture) heldAmongOthers(t *testing.T, outcome int) {
	running, err := consumer.New(s.store, func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
		return s.effect(ctx, tx, m.Identity.ID)
	}, consumer.Config{Name: "billing", Identity: identity.By("header:id"), Fingerprint: identity.FingerprintNone()})
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close(context.WithoutCancel(t.Context()))
	var all []*semel.Message
	for _, id := range []string{"1", "held", "2"} {
		all = append(all, &semel.Message{Headers: semel.Headers{{Name: "id", Value: []byte(id)}}})
	}
	answers, err := running.ProcessAll(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	if d := answers[1]; d.Kind != semel.Nack || d.Reason != reasonname.Newer {
		t.Errorf("outcome %d: %+v", outcome, d)
	}
	if got := fmt.Sprint(answers[0].Ending, answers[2].Ending, s.Count(t, "1"), s.Count(t, "held"), s.Count(t, "2")); got != "applied applied 1 1 1" {
		t.Errorf("outcome %d: %s", outcome, got)
	}
	s.exec(t, "update in.semel_markers set outcome = 1")
	if d, err := running.Process(t.Context(), all[1]); err != nil || d.Ending != source.EndDuplicate || s.Count(t, "held") != 1 {
		t.Errorf("outcome %d, when it is known: %+v, %v", outcome, d, err)
	}
}
