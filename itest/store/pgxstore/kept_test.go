package pgxstore

import (
	"runtime"
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sqlstore"
)

func TestAStoreThatNothingRefersToAnyMore(t *testing.T) {
	t.Run("J2_ends_the_call_that_is_under_way", func(t *testing.T) {
		dsn := services.Postgres(t)
		if err := workload.Migrate(t.Context(), dsn); err != nil {
			t.Fatal(err)
		}
		pool := openPool(t, dsn)
		for _, statement := range []string{`create table processed (id text primary key)`, `insert into processed select n from generate_series(1, 200) n`} {
			if _, err := pool.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error, 1)
		go func() {
			store, err := pgxstore.New(pool, pgxstore.Options{})
			if err == nil {
				_, err = store.Seed(t.Context(), sqlstore.Seed{Consumer: "billing", Table: "processed", ID: "id", Batch: 1})
			}
			done <- err
		}()
		for collected := 0; ; collected++ {
			select {
			case err := <-done:
				if err != nil || collected == 0 {
					t.Errorf("garbage was collected %d times; %v", collected, err)
				}
				return
			default:
				runtime.GC()
			}
		}
	})
}
