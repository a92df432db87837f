package pgxstore

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/pgxstore"
)

func TestVersionsTakeEffectInTheirOrder(t *testing.T) {
	pool := openPool(t, services.Postgres(t))
	history := func(t *testing.T) (*fixture, string, func(testing.TB, string) []int) {
		h := newFixture(t, pool)
		h.exec(t, "create table in.history (n bigint generated always as identity, stream text not null, version bigint not null)")
		return h, h.inSchema("insert into in.history (stream, version) values ($1, $2)"), func(t testing.TB, stream string) []int {
			rows, err := pool.Query(t.Context(), h.inSchema("select version from in.history where stream = $1 order by n"), stream)
			if err != nil {
				t.Fatal(err)
			}
			all, err := pgx.CollectRows(rows, pgx.RowTo[int])
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
	}
	t.Run("handle", func(t *testing.T) {
		h, insert, versions := history(t)
		followed := sqlsuite.Followed[pgx.Tx]{Store: h.Store, Versions: versions, Append: func(ctx context.Context, tx pgx.Tx, stream string, version int) error {
			_, err := tx.Exec(ctx, insert, stream, version)
			return err
		}}
		sqlsuite.Versions(t, followed)
		sqlsuite.Drawn(t, followed)
	})
	t.Run("queue", func(t *testing.T) {
		h, insert, versions := history(t)
		followed := sqlsuite.Followed[*pgxstore.Queue]{Store: h.Store.Queued(), Versions: versions, Append: func(_ context.Context, q *pgxstore.Queue, stream string, version int) error {
			q.Exec(insert, stream, version)
			return nil
		}}
		sqlsuite.Versions(t, followed)
		sqlsuite.Drawn(t, followed)
	})
}
