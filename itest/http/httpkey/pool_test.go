package httpkey

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestTrap131HandlersThatTakeASecondConnectionDoNotWaitForEachOther(t *testing.T) {
	dsn := services.Postgres(t)
	openPool(t, dsn) // openPool creates the tables
	for _, size := range []int{2, 4} {
		t.Run(fmt.Sprintf("trap_131_of_a_pool_of_%d", size), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			pool := must.Get(pgxpool.New(ctx, fmt.Sprintf("%s&pool_max_conns=%d", dsn, size)))(t)
			defer pool.Close()
			store := must.Get(pgxstore.New(pool, pgxstore.Options{}))(t)
			g := must.Get(httpkey.New(store, config()))(t)
			h := g.ProtectFunc(func(w http.ResponseWriter, r *http.Request) {
				var one int
				status(w, pool.QueryRow(r.Context(), "select 1").Scan(&one))
			})
			var asking sync.WaitGroup
			for i := range 40 {
				asking.Go(func() {
					w := ask(ctx, t, h, fmt.Sprintf("%d of %d", i, size))
					for w.Code == http.StatusTooManyRequests && ctx.Err() == nil { // it has waited for a second on a slow machine
						w = ask(ctx, t, h, fmt.Sprintf("%d of %d", i, size))
					}
					if w.Code != http.StatusCreated {
						t.Errorf("%d: %s", w.Code, w.Body)
					}
				})
			}
			asking.Wait()
		})
	}
}

func TestTrap131AStoreTellsTheSizeOfItsPool(t *testing.T) {
	dsn := services.Postgres(t)
	pool := must.Get(pgxpool.New(t.Context(), dsn+"&pool_max_conns=3"))(t)
	defer pool.Close()
	direct := must.Get(pgxstore.New(pool, pgxstore.Options{}))(t)
	db := must.Get(sql.Open("pgx", dsn))(t)
	defer func() { _ = db.Close() }()
	plain := must.Get(sqlstore.Postgres(db, sqlstore.Options{}))(t)
	if n := plain.Limits().Connections; n != 0 {
		t.Errorf("a pool without a bound has %d", n)
	}
	db.SetMaxOpenConns(3)
	for name, limited := range map[string]interface{ Limits() store.Limits }{"pgx": direct, "pgx queued": direct.Queued(), "database/sql": plain} {
		if n := limited.Limits().Connections; n != 3 {
			t.Errorf("%s has %d", name, n)
		}
	}
	c := config()
	c.MostOpen = 3
	if _, err := httpkey.New(plain, c); err == nil || !strings.Contains(err.Error(), "3 connections") {
		t.Errorf("it says %v", err)
	}
}
