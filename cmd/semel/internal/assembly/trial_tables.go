package assembly

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/store"
)

// column is a column of one of the user's tables.
type column struct {
	table, name string
	// tableSQL is the table's name in SQL. valueSQL is an SQL expression that returns the column's value as text.
	tableSQL, valueSQL string
	// byDefault is the default value; empty if there is none.
	byDefault string
}

func (c column) String() string { return c.table + "." + c.name }

// volatileDefault matches default values that differ in two equal runs.
var volatileDefault = regexp.MustCompile(`(?i)current_|now\(|random|uuid|date\(|time\(|julianday|nextval|identity`)

// comparedColumns returns the columns that are compared to find a handler's effect. Columns in Ignore are
// left out. Columns whose default is a time, a random value or a sequence number are left out too.
func (t *Trial) comparedColumns(all []column) []column {
	return slices.DeleteFunc(slices.Clone(all), func(c column) bool {
		return volatileDefault.MatchString(c.byDefault) || slices.Contains(t.Ignore, c.String())
	})
}

// checkIgnored returns an error if Ignore names a column that does not exist, or if there is nothing to
// compare.
func (t *Trial) checkIgnored(all []column) error {
	for _, name := range t.Ignore {
		if !slices.ContainsFunc(all, func(c column) bool { return c.String() == name }) {
			return fmt.Errorf("--ignore %s: there is no such column; write TABLE.COLUMN", name)
		}
	}
	if len(t.comparedColumns(all)) == 0 && !t.onlyCalls() && len(t.senders()) == 0 {
		return fmt.Errorf("store %s has no tables to compare; create them with setup: FILE.sql at the store, or with --setup", t.Consumer.Store)
	}
	return nil
}

// contents returns the rows of all tables as a text, sorted.
func contents(ctx context.Context, db *sql.DB, all []column) (string, error) {
	var lines []string
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(c column) bool { return c.tableSQL != all[0].tableSQL })
		if n < 0 {
			n = len(all)
		}
		found, err := rowsOf(ctx, db, all[:n])
		if err != nil {
			return "", err
		}
		slices.Sort(found)
		lines, all = append(lines, found...), all[n:]
	}
	return strings.Join(lines, "\n"), nil
}

func rowsOf(ctx context.Context, db *sql.DB, of []column) (found []string, err error) {
	var texts []string
	for _, c := range of {
		texts = append(texts, c.valueSQL)
	}
	rows, err := db.QueryContext(ctx, "select "+strings.Join(texts, ", ")+" from "+of[0].tableSQL)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	values, into := make([]sql.NullString, len(of)), make([]any, len(of))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		line := of[0].table + ":"
		for i, c := range of {
			if values[i].Valid {
				line += " " + c.name + "=" + values[i].String
			}
		}
		found = append(found, line)
	}
	return found, rows.Err()
}

// senders returns the names of the consumers that send the handler's intents.
func (t *Trial) senders() (names []string) {
	for _, c := range t.Policy.Consumers {
		if t.Consumer.WritesTo(c.Name) {
			names = append(names, c.Name)
		}
	}
	return names
}

// effect returns a function that returns the rows of these columns, and the intents, as a text.
func (t *Trial) effect(db *sql.DB, all []column, st store.Inbox) func(context.Context) (string, error) {
	all = t.comparedColumns(all)
	return func(ctx context.Context) (string, error) {
		text, err := contents(ctx, db, all)
		if err != nil {
			return "", err
		}
		var lines []string
		for _, to := range t.senders() {
			rows, err := st.Rows(ctx, store.RowFilter{Consumer: to, Bodies: true})
			if err != nil {
				return "", err
			}
			for _, r := range rows {
				lines = append(lines, fmt.Sprintf("intent to %s: %s %s", to, r.Key.ID, r.Message.Body))
			}
		}
		slices.Sort(lines)
		return text + "\n" + strings.Join(lines, "\n"), nil
	}
}

// columns returns the columns of the user's tables. A table is the user's if its name does not have the
// prefix of Semel's tables.
func (d *sqlite) columns(ctx context.Context, prefix string) ([]column, error) {
	all, err := readColumns(ctx, d.db, func(c *column) { c.tableSQL, c.valueSQL = sqltext.Quoted(c.table), "quote("+sqltext.Quoted(c.name)+")" },
		`select m.name, c.name, coalesce(c.dflt_value, '') from sqlite_master m, pragma_table_info(m.name) c
where m.type = 'table' and m.name not like 'sqlite\_%' escape '\' order by m.name, c.cid`)
	return slices.DeleteFunc(all, func(c column) bool { return strings.HasPrefix(c.table, prefix) }), err
}

// readColumns returns the columns that a query names: table, column and default value. The function express sets
// the SQL expressions of a column.
func readColumns(ctx context.Context, db *sql.DB, express func(*column), query string, args ...any) (all []column, err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c column
		if err := rows.Scan(&c.table, &c.name, &c.byDefault); err != nil {
			return nil, err
		}
		express(&c)
		all = append(all, c)
	}
	return all, rows.Err()
}

// copyTables creates the tables, indexes, views and triggers of another file, without rows and without Semel's tables.
// copyTables does nothing if the other file does not exist.
func (d *sqlite) copyTables(ctx context.Context, from *policy.SQLite) error {
	if checkFile(from.Path, false) != nil {
		return nil
	}
	other, err := sql.Open("sqlite", address(from.Path)+"&mode=ro")
	if err != nil {
		return err
	}
	defer other.Close()
	rows, err := other.QueryContext(ctx, `select tbl_name, sql from sqlite_master where sql is not null and name not like 'sqlite\_%' escape '\'
order by case type when 'table' then 0 when 'index' then 1 when 'view' then 2 else 3 end, rowid`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var table, text string
		if err := rows.Scan(&table, &text); err != nil {
			return err
		}
		if strings.HasPrefix(table, from.Prefix) {
			continue
		}
		if _, err := d.db.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	return rows.Err()
}
