package pgxstore

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/pgproxy"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
	"github.com/semel-go/semel/store"
)

// deliverReading queues an insert of an effect and reads the row that the insert returns.
func deliverReading(t testing.TB, h *fixture, ids []string) store.Result {
	t.Helper()
	b, v := sqlsuite.Begin[*pgxstore.Queue](t, h.Queued(), store.TxOptions{}, h.makeMarks(t, ids...))
	for i := range v {
		if v[i].Kind == store.Fresh {
			b.Tx(i).Query(h.inSchema(insert+" returning 1"), []byte(ids[i])).Do(func(rows pgx.Rows) error {
				_, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
				return err
			})
		}
	}
	return b.Commit(t.Context(), store.Ending{})
}

func TestRoundTripsOfABatch(t *testing.T) {
	proxy := pgproxy.Start(t, services.Postgres(t))
	alone := func(c *pgxpool.Config) { c.MaxConns = 1 }
	for _, mode := range []struct {
		name   string
		change func(*pgxpool.Config)
	}{{"named", func(*pgxpool.Config) {}}, {"unnamed", useUnnamed}, {"undescribed", useTextArgs}} {
		h := newFixture(t, openPool(t, proxy.DSN(), mode.change, alone))
		for _, deliver := range []func(testing.TB, *fixture, []string) store.Result{deliverDirect, deliverQueued, deliverReading} {
			wantCommitted(t, deliver(t, h, makeIDs(-2, 0))) // the first delivery prepares the statements
			wantCommitted(t, deliver(t, h, makeIDs(-2, 0))) // the second delivery prepares the statements for duplicates
			h.exec(t, "delete from in.semel_markers")
		}
		for _, c := range []struct {
			name    string
			deliver func(testing.TB, *fixture, []string) store.Result
			ids     []string
			want    int
		}{
			{"handle_n_plus_2", deliverDirect, makeIDs(0, 100), 102},
			{"handle_one_more_with_duplicates", deliverDirect, makeIDs(50, 150), 53},
			{"handle_3_of_duplicates_only", deliverDirect, makeIDs(0, 100), 3},
			{"queue_2", deliverQueued, makeIDs(200, 700), 2},
			{"queue_one_more_with_duplicates", deliverQueued, makeIDs(650, 750), 3},
			{"queue_3_of_duplicates_only", deliverQueued, makeIDs(200, 700), 3},
			{"queue_3_with_callbacks", deliverReading, makeIDs(800, 900), 3},
			{"queue_4_with_callbacks_and_duplicates", deliverReading, makeIDs(850, 950), 4},
		} {
			t.Run(mode.name+"/"+c.name, func(t *testing.T) {
				h.scope(t)
				proxy.ResetCounts()
				wantCommitted(t, c.deliver(t, h, c.ids))
				if got := proxy.Counts().RoundTrips; got != c.want {
					t.Errorf("%d round trips, want %d", got, c.want)
				}
			})
		}
	}
}
