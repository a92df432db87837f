package sqlite

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestSeeding(t *testing.T) {
	t.Run("J2_ids_of_an_old_sqlite_table_become_markers", func(t *testing.T) {
		db := openFile(t, newFile(t), pragmas)
		s := storeOn(t, db)
		exec(t, db, `create table "my old" ("the Id", state text)`)
		exec(t, db, `insert into "my old" values (7, 'done'), (-12, 'done'), ('7', 'done'), ('ä', 'done'), (x'00ff', 'done'), ('new', 'new'), (null, 'done')`)
		o := sqlstore.Seed{Consumer: "billing", Table: "my old", ID: "the Id", Where: "state = 'done'", Batch: 1}
		ctx, stop := context.WithCancel(t.Context())
		o.Progress = func(n sqlstore.Seeded) {
			if n.Read == 3 {
				stop()
			}
		}
		if sum, err := s.Seed(ctx, o); !errors.Is(err, context.Canceled) || sum.Read != 3 {
			t.Fatalf("%+v, %v", sum, err)
		}
		sum, err := s.Seed(t.Context(), o)
		// The integer 7 and the text "7" are the same id, so the id 7 is read twice, and one marker is written.
		if err != nil || sum != (sqlstore.Seeded{Read: 5, Written: 4, Resumed: true}) {
			t.Errorf("%+v, %v", sum, err)
		}
		wantSeeded(t, s, "7", "-12", "ä", "\x00\xff")
	})
	t.Run("J2_a_fraction_is_no_id", func(t *testing.T) {
		db := openFile(t, newFile(t), pragmas)
		s := storeOn(t, db)
		exec(t, db, "create table old (id)")
		exec(t, db, "insert into old values (1.5)")
		_, err := s.Seed(t.Context(), sqlstore.Seed{Consumer: "billing", Table: "old", ID: "id"})
		sqlsuite.Refused(t, err, "a fraction")
		_, err = s.Seed(t.Context(), sqlstore.Seed{Consumer: "billing", Table: "older", ID: "id"})
		sqlsuite.Refused(t, err, "there is no table older")
		_, err = s.Seed(t.Context(), sqlstore.Seed{Consumer: "billing", Table: "old", ID: "ids"})
		sqlsuite.Refused(t, err, "its columns are id")
	})
}

func TestAdoption(t *testing.T) {
	t.Run("J2_a_table_in_sqlite_is_not_adopted_but_seeded", func(t *testing.T) {
		s := storeOn(t, openFile(t, newFile(t), pragmas))
		_, err := s.Adopt(t.Context(), sqlstore.Adopted{Consumer: "billing", Table: "old", ID: "id"})
		if !errors.Is(err, semel.ErrUnsupported) || !strings.Contains(err.Error(), "seed its ids instead") {
			t.Errorf("got %v", err)
		}
	})
}

func wantSeeded(t *testing.T, s *sqlstore.Store, ids ...string) {
	t.Helper()
	scope, err := s.Scope(t.Context(), "billing", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		b, v, err := s.Begin(t.Context(), store.TxOptions{}, []store.Mark{{Scope: scope, ID: []byte(id), As: store.Applied}})
		if err != nil {
			t.Fatal(err)
		}
		b.Rollback(t.Context())
		if !v[0].Already(store.Applied) {
			t.Errorf("the verdict on %q is %d", id, v[0].Kind)
		}
	}
}
