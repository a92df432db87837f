package postgres

import (
	"testing"

	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestAServerThatComesBackWithoutItsLastScopes(t *testing.T) {
	t.Run("law_1_no_two_sources_share_a_number_that_one_process_remembers", func(t *testing.T) {
		s := newFixture(t, newDatabase(t), sqlstore.Options{})
		before, err := s.store.Scope(t.Context(), "billing", "/a", 0)
		if err != nil {
			t.Fatal(err)
		}
		// The standby that takes over lacks the source's row and the position of its sequence.
		s.exec(t, "delete from in.semel_scopes")
		s.exec(t, "insert into in.semel_scopes (number, consumer, source, generation) overriding system value values ($1, 'billing', '/b', 0)", before)
		_, err = s.db.ExecContext(t.Context(), "select pg_terminate_backend(pg_backend_pid())")
		if class := s.store.Classify(err); class != store.ClassDown {
			t.Fatalf("the server that went away is %v: %v", class, err)
		}
		if after, err := s.store.Scope(t.Context(), "billing", "/a", 0); err != nil || after == before {
			t.Errorf("source /a still has the number %d, which is that of /b now, %v", after, err)
		}
	})
}
