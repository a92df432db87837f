package postgres

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/upsert"
)

func TestARowIsKeptAtItsNewestVersion(t *testing.T) {
	db := newDatabase(t)
	s := newFixture(t, db, sqlstore.Options{})
	s.execAll(t, []string{`create table in."Index" (id text primary key, "order" text, v bigint)`})
	table, _, _ := strings.Cut(s.inSchema("in."), ".")
	text, err := upsert.Newer{Table: strings.Trim(table, `"`) + ".Index", Key: []string{"id"}, Set: []string{"order"}, Version: "v"}.PostgreSQL()
	if err != nil {
		t.Fatal(err)
	}
	newest := func(t *testing.T, id string) (v int) {
		if err := db.QueryRow(s.inSchema(`select v from in."Index" where id = $1 and "order" = 'state ' || v`), id).Scan(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	write := func(tx interface {
		Exec(query string, args ...any) (sql.Result, error)
	}, id string, v int) error {
		_, err := tx.Exec(text, id, fmt.Sprint("state ", v), v)
		return err
	}
	t.Run("B5_in_any_order_with_copies", func(t *testing.T) {
		for seed := range uint64(20) {
			random, id := rand.New(rand.NewPCG(seed, 1)), fmt.Sprint("any ", seed)
			for _, i := range random.Perm(16) {
				if err := write(db, id, i%8+1); err != nil {
					t.Fatal(err)
				}
			}
			if got := newest(t, id); got != 8 {
				t.Errorf("seed %d ends at version %d", seed, got)
			}
		}
	})
	t.Run("B5_at_once", func(t *testing.T) {
		var group sync.WaitGroup
		for v := range 16 {
			group.Go(func() {
				if err := write(db, "at once", v+1); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if got := newest(t, "at once"); got != 16 {
			t.Errorf("it ends at version %d", got)
		}
	})
}
