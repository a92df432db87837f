package pgxstore

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestStatementsArePreparedAgainAtDoublingIntervals(t *testing.T) {
	var at []int
	for k := new(connectionData); k.exchanges < 2100; {
		if k.shouldRenew() {
			at = append(at, k.exchanges)
		}
	}
	if !slices.Equal(at, []int{256, 512, 1024, 2048}) {
		t.Errorf("at %v", at)
	}
}

// Behind a pooler that does not track prepared statements, one client can see the prepared statements of
// another client.
func TestStatementNamesAreUnique(t *testing.T) {
	one, other := &link{mode: pgx.QueryExecModeCacheStatement, known: &connectionData{}}, &link{mode: pgx.QueryExecModeCacheStatement, known: &connectionData{}}
	inserts, deletes := "insert into orders values ($1)", "delete from orders where item = $1"
	if a, b := one.newNames([]string{inserts, deletes}), other.newNames([]string{deletes, inserts}); a[0] == b[0] || a[1] == b[1] || len(a[0]) > 63 {
		t.Errorf("%q and %q", a, b)
	}
	if a := one.newNames([]string{inserts, inserts}); a[0] == a[1] {
		t.Errorf("one that was closed has the name again: %q", a)
	}
}
