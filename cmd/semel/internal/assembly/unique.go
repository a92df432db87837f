package assembly

import (
	"context"
	"fmt"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// checkKey refuses a business key whose constraint is not there: its violation
// would never be recognised, and each copy would be a failure.
func (a *Assembly) checkKey(ctx context.Context, c *policy.Consumer, store *Store) error {
	key := c.Strategy.BusinessKey
	if key == nil {
		return nil
	}
	// A database that cannot answer is met again by whoever works with it.
	if there, err := store.hasUnique(ctx, key.Constraint); there || err != nil {
		return nil
	}
	return a.policy.Fault(fmt.Sprintf("consumers.%s.strategy.business_key.constraint", c.Name),
		fmt.Sprintf("the database has no unique constraint or index %q", key.Constraint),
		"correct the name as the database reports it, or create it, such as with setup: FILE.sql at the store")
}

// A constraint's index has its name, but that of an exclusion constraint is not
// unique.
const postgresUnique = `select exists (
	select 1 from pg_class c join pg_index i on i.indexrelid = c.oid where c.relname = $1::name and i.indisunique
	union all
	select 1 from pg_constraint where conname = $1::name and contype in ('p', 'u', 'x'))`

func (d *postgres) hasUnique(ctx context.Context, constraint string) (there bool, err error) {
	err = d.db.QueryRowContext(ctx, postgresUnique, constraint).Scan(&there)
	return there, err
}

const sqliteUnique = `select exists (
	select 1 from pragma_index_list(?1) l where l."unique" = 1 and ?2 = (
		select group_concat(name) from (select lower(name) as name from pragma_index_info(l.name) order by seqno))
	union all
	select 1 where ?2 = (
		select group_concat(name) from (select lower(name) as name from pragma_table_info(?1) where pk > 0 order by pk)))`

// hasUnique finds the columns of a constraint in their order, each with its
// table, as violates compares them.
func (d *sqlite) hasUnique(ctx context.Context, constraint string) (there bool, err error) {
	var table string
	var columns []string
	for _, part := range strings.Fields(strings.ReplaceAll(constraint, ",", " ")) {
		of, column, ok := strings.Cut(part, ".")
		if !ok || table != "" && !strings.EqualFold(of, table) {
			return false, nil
		}
		table, columns = of, append(columns, strings.ToLower(column))
	}
	err = d.db.QueryRowContext(ctx, sqliteUnique, table, strings.Join(columns, ",")).Scan(&there)
	return there, err
}
