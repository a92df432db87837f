package sqlite

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

func TestAConnectionThatAHandlerSpoiled(t *testing.T) {
	t.Run("it_is_closed_and_the_store_is_back", func(t *testing.T) {
		db := openFile(t, t.TempDir()+"/shop.db", pragmas+foreignKeys)
		s := storeOn(t, db)
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		scope, err := s.Scope(t.Context(), "billing", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		begin := func(id string) (store.Batch[*sql.Tx], error) {
			b, _, err := s.Begin(t.Context(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte(id), As: store.Applied}})
			return b, err
		}
		b, err := begin("spoils")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Tx(0).Exec("pragma query_only = 1"); err != nil {
			t.Fatal(err)
		}
		b.Rollback(t.Context())
		if b, err = begin("next"); err == nil {
			b.Rollback(t.Context())
			t.Fatal("the situation did not occur: the connection writes")
		}
		t.Log(err)
		if b, err = begin("next"); err != nil {
			t.Fatalf("the same connection was asked again: %v", err)
		}
		if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.Committed {
			t.Error(r)
		}
		if b, err = begin("spoils its own commit"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Tx(0).Exec("pragma query_only = 1"); err != nil {
			t.Fatal(err)
		}
		if r := b.Commit(t.Context(), store.Ending{}); r.Outcome != store.NotCommitted || r.Class != store.ClassDown {
			t.Fatalf("the situation did not occur: %+v", r)
		}
		if b, err = begin("after"); err != nil {
			t.Fatalf("the connection on which it could not commit was asked again: %v", err)
		}
		if _, err := b.Tx(0).Exec("pragma query_only = 1"); err != nil {
			t.Fatal(err)
		}
		if !b.(store.TxStatus).TxAborted() {
			t.Fatal("the situation did not occur: the transaction stands")
		}
		b.Rollback(t.Context())
		if b, err = begin("after"); err != nil {
			t.Fatalf("the connection of a broken batch was asked again: %v", err)
		}
		b.Rollback(t.Context())
	})
	t.Run("a_write_that_it_refuses_is_made_by_the_next", func(t *testing.T) {
		db := openFile(t, t.TempDir()+"/shop.db", pragmas+foreignKeys)
		s := storeOn(t, db)
		if _, err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		db.SetMaxOpenConns(1)
		if _, err := db.Exec("pragma query_only = 1"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Scope(t.Context(), "billing", "", 0); err == nil {
			t.Fatal("the situation did not occur: the connection writes")
		}
		if _, err := s.Scope(t.Context(), "billing", "", 0); err != nil {
			t.Errorf("the same connection was asked again: %v", err)
		}
	})
}

func TestAHandlerThatSpoilsItsConnection(t *testing.T) {
	t.Run("trap_T83_its_message_is_parked_and_its_neighbours_are_applied", func(t *testing.T) {
		i := instance(t, pragmas+foreignKeys)
		handle := func(ctx context.Context, tx *sql.Tx, m *semel.Message) error {
			if m.Attributes.ID == "bad" {
				return i.Send(ctx, tx, "pragma query_only = 1")
			}
			return i.Effect(ctx, tx, m.Attributes.ID)
		}
		running, err := consumer.New(i.Store, handle, consumer.Config{Name: "billing", Identity: identity.CloudEvents(),
			Retry: consumer.RetryPolicy{MaxAttempts: 2, InitialDelay: time.Millisecond, MaxDelay: time.Millisecond}})
		if err != nil {
			t.Fatal(err)
		}
		ended := map[string]source.End{}
		for attempt := 1; attempt <= 3; attempt++ {
			for _, id := range []string{"first", "bad", "last"} {
				d, err := running.Process(t.Context(), &semel.Message{Attributes: semel.Attributes{ID: id, Source: "shop"}, Attempt: attempt})
				if err != nil {
					t.Fatal(err)
				}
				if _, before := ended[id]; d.Kind == semel.Ack && !before {
					ended[id] = d.Ending
				}
			}
		}
		if err := running.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if ended["first"] != source.EndApplied || ended["last"] != source.EndApplied || ended["bad"] != source.EndParked {
			t.Errorf("they ended as %v", ended)
		}
	})
}
