package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestAHandlerThatRollsBackAndWrites(t *testing.T) {
	t.Run("trap_T99_its_message_is_parked_and_nothing_of_it_stays", func(t *testing.T) {
		i := instance(t, pragmas+foreignKeys)
		s := i.Store.(*sqlstore.Store)
		runs := 0
		handle := func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
			if m.Attributes.ID != "bad" {
				return i.Effect(ctx, tx, m.Attributes.ID)
			}
			runs++
			return errors.Join(i.Send(ctx, tx, "rollback"), i.Effect(ctx, tx, "bad"))
		}
		running, err := consumer.New(s, handle, consumer.Config{Name: "billing", Identity: identity.CloudEvents(),
			Retry: consumer.RetryPolicy{MaxAttempts: 3, InitialDelay: time.Millisecond, MaxDelay: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		left := map[string]bool{"first": true, "bad": true, "last": true}
		for range 20 {
			for _, id := range []string{"first", "bad", "last"} {
				if !left[id] {
					continue
				}
				d, err := running.Process(t.Context(), &semel.Message{Attributes: semel.Attributes{ID: id, Source: "shop"}, Attempt: runs})
				if err != nil {
					t.Fatal(err)
				}
				left[id] = d.Kind != semel.Ack
			}
		}
		if err := running.Close(t.Context()); err != nil {
			t.Error(err)
		}
		rows, err := s.Rows(t.Context(), store.RowFilter{})
		if err != nil || len(rows) != 1 || rows[0].Key.ID != "bad" || runs == 0 {
			t.Errorf("after %d runs the rows are %+v, %v, want one of bad", runs, rows, err)
		}
		for id, want := range map[string]int{"first": 1, "bad": 0, "last": 1} {
			if n := i.Count(t, id); n != want {
				t.Errorf("%d effects of %s, want %d", n, id, want)
			}
		}
	})
}
