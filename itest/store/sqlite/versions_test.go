package sqlite

import (
	"context"
	"database/sql"
	"testing"

	"github.com/semel-go/semel/itest/store/sqlsuite"
)

func TestVersionsTakeEffectInTheirOrder(t *testing.T) {
	db := openFile(t, newFile(t), pragmas)
	exec(t, db, "create table history (n integer primary key, stream text not null, version integer not null)")
	followed := sqlsuite.Followed[*sql.Tx]{
		Store: storeOn(t, db),
		Append: func(ctx context.Context, tx *sql.Tx, stream string, version int) error {
			_, err := tx.ExecContext(ctx, "insert into history (stream, version) values (?, ?)", stream, version)
			return err
		},
		Versions: func(t testing.TB, stream string) []int {
			return sqlsuite.Column(t, db, "select version from history where stream = ? order by n", stream)
		},
	}
	sqlsuite.Versions(t, followed)
	sqlsuite.Drawn(t, followed)
}
