package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// newCountingProxy returns a database with a single connection, and the proxy that counts its round trips.
func newCountingProxy(t *testing.T) (*pgproxy.Proxy, *sql.DB) {
	t.Helper()
	p := pgproxy.Start(t, services.Postgres(t))
	config, err := pgx.ParseConfig(p.DSN())
	if err != nil {
		t.Fatal(err)
	}
	// By default the driver pings a connection that was unused for a second.
	never := stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false })
	db := stdlib.OpenDB(*config, never)
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	return p, db
}

func TestRoundTripsOfABatch(t *testing.T) {
	p, db := newCountingProxy(t)
	s := newFixture(t, db, sqlstore.Options{})
	row := store.Row{Mark: 1, State: store.StateParked, Message: &semel.Message{}}
	for _, batch := range []struct {
		name        string
		first, last int // range of ids; an id below the highest id so far is a duplicate
		options     store.TxOptions
		ending      store.Ending
		want        int
	}{
		{"what is prepared once", 0, 100, store.TxOptions{}, store.Ending{}, 0},
		{"what is prepared once for duplicates, trims and rows", 99, 102, store.TxOptions{Serial: true}, store.Ending{Trim: []int{2}, Rows: []store.Row{row}}, 0},
		{"100 fresh messages: the effects and 4", 200, 300, store.TxOptions{}, store.Ending{}, 100 + 4},
		{"one message", 300, 301, store.TxOptions{}, store.Ending{}, 1 + 4},
		{"5,000 fresh messages", 1000, 6000, store.TxOptions{}, store.Ending{}, 5000 + 4},
		{"50 duplicates and 50 fresh: one more", 5950, 6050, store.TxOptions{}, store.Ending{}, 50 + 5},
		{"only duplicates", 0, 100, store.TxOptions{}, store.Ending{}, 5},
		{"any number of trims is one more", 6100, 6200, store.TxOptions{}, store.Ending{Trim: []int{97, 98, 99}}, 97 + 5},
		{"in turn with others of the consumer: one more", 6300, 6310, store.TxOptions{Serial: true}, store.Ending{}, 10 + 5},
	} {
		t.Run(batch.name, func(t *testing.T) {
			var ids []string
			for i := batch.first; i < batch.last; i++ {
				ids = append(ids, fmt.Sprint(i))
			}
			marks := s.makeMarks(t, ids...)
			p.ResetCounts()
			b, v := s.begin(t, batch.options, marks)
			for i := range v[:len(v)-len(batch.ending.Trim)] {
				if v[i].Kind != store.Fresh {
					continue
				}
				if err := s.Effect(t.Context(), b.Tx(i), ids[i]); err != nil {
					t.Fatal(err)
				}
			}
			if r := b.Commit(t.Context(), batch.ending); r.Outcome != store.Committed {
				t.Fatal(r)
			}
			if got := p.Counts().RoundTrips; batch.want != 0 && got != batch.want {
				t.Errorf("%d round trips, want %d", got, batch.want)
			}
		})
	}
}

// A call of the reaper, which removes old markers, has these round trips: BEGIN with its lock, the lock timeout, the
// policy with the table of partitions, rows, markers, bodies, COMMIT.
func TestRoundTripsOfASlice(t *testing.T) {
	const slice = 8
	p, db := newCountingProxy(t)
	s := newRetentionFixture(t, db, month)
	if _, err := s.store.Advance(t.Context(), "billing"); err != nil {
		t.Fatal(err)
	}
	next := store.ReapMark{}
	for _, want := range []int{0, slice, slice} { // the first call prepares the statements, so its round trips do not count
		p.ResetCounts()
		r, err := s.store.Reap(t.Context(), store.Reaping{Consumer: "billing", Most: 500, After: next})
		if err != nil || r.Next.Done {
			t.Fatal(r, err)
		}
		if got := p.Counts().RoundTrips; want != 0 && got != want {
			t.Errorf("%d round trips, want %d", got, want)
		}
		next = r.Next
	}
}
