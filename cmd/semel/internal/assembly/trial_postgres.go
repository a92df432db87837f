package assembly

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/internal/handlertest"
	"github.com/semel-go/semel/internal/sqltext"
	"github.com/semel-go/semel/pgxstore"
)

// schemas has the names of the two schemas of a trial: own for Semel's tables, and users for the user's own
// tables. Each subtest drops the schema users and creates it again.
type schemas struct{ own, users string }

// onPostgres creates two schemas in the store's database, runs the subtests in these schemas, and drops the
// schemas.
func (t *Trial) onPostgres(ctx context.Context, of *policy.Store) (report handlertest.Report, err error) {
	text, err := t.tables(of)
	if err != nil {
		return nil, err
	}
	outside, err := Open(t.Policy, Options{Logger: newDiscardLogger()}, func(s *policy.Store) bool { return s == of }, func(*policy.Store) bool { return false })
	if err != nil {
		return nil, err
	}
	defer outside.Close()
	s := outside.Stores[0]
	d := s.database.(*postgres)
	name := "semel_prove_" + strings.ToLower(rand.Text()[:10])
	other, in := *of, schemas{name, name + "_tables"}
	if other.Postgres, err = inSchemas(of.Postgres, in); err != nil {
		return nil, err
	}
	if err := t.rejectSchemaNames(ctx, d.db, text); err != nil {
		return nil, s.Failed(err)
	}
	if _, err := d.db.ExecContext(ctx, "create schema "+in.own+"; create schema "+in.users); err != nil {
		return nil, s.Failed(fmt.Errorf("create a schema for the test: %w; grant create on the database to the role, or use a database for tests", err))
	}
	defer func() {
		soon, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWithin)
		defer cancel()
		_, failed := d.db.ExecContext(soon, "drop schema "+in.own+" cascade; drop schema "+in.users+" cascade")
		err = errors.Join(err, s.Failed(failed))
	}()
	return t.inSchemas(ctx, other, in, text)
}

// inSchemas runs the subtests in schemas that exist. The statements in text create the user's tables.
func (t *Trial) inSchemas(ctx context.Context, of policy.Store, in schemas, text string) (handlertest.Report, error) {
	of.Setup = "" // the parameter text contains the statements of the setup file
	a, err := t.open(of, false)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	if err := a.Prepare(ctx, true); err != nil {
		return nil, err
	}
	s := a.Stores[0]
	d := s.database.(*postgres)
	empty := "" // the intents of a message have the same ids in each subtest
	if len(t.senders()) > 0 {
		own := in.own + "." + of.Postgres.Prefix
		empty = "truncate " + own + "inbox, " + own + "edits, " + own + "markers;\n"
	}
	renew := func(ctx context.Context) ([]column, error) {
		_, err := d.db.ExecContext(ctx, empty+"drop schema "+in.users+" cascade; create schema "+in.users+";\n"+text)
		if err != nil {
			return nil, fmt.Errorf("create the tables for the test: %w", err)
		}
		return d.columns(ctx, in.users)
	}
	all, err := renew(ctx)
	if err != nil {
		return nil, s.Failed(err)
	}
	if err := t.checkStatements(ctx, a, all); err != nil {
		return nil, err
	}
	prepare := func(h handlertest.T) {
		if _, err := renew(h.Context()); err != nil {
			h.Fatal(err)
		}
	}
	effect := t.effect(d.db, all, d.plain)
	if usesQueue(t.Consumer) {
		return runTrial(ctx, t.Consumer.Name, func(h handlertest.T) handlertest.Handler[*pgxstore.Queue] {
			prepare(h)
			return newTestHandler(h, t, a, access[*pgxstore.Queue]{d.direct.Queued(), runQueued, (*sqlhandler.Effects).Queue, effect})
		}), nil
	}
	return runTrial(ctx, t.Consumer.Name, func(h handlertest.T) handlertest.Handler[*sql.Tx] {
		prepare(h)
		return newTestHandler(h, t, a, access[*sql.Tx]{d.plain, runSeparately, (*sqlhandler.Effects).Handle, effect})
	}), nil
}

// tables returns the statements that create the user's tables: the statements of the policy's setup file, and
// those of the file Setup.
func (t *Trial) tables(of *policy.Store) (string, error) {
	if of.Setup == "" && t.Setup == "" && !t.onlyCalls() {
		return "", fmt.Errorf("store %s has no setup, so its tables cannot be created in another schema; write setup: FILE.sql at the store, or give --setup FILE.sql, without names of schemas", of.Name)
	}
	text := ""
	if of.Setup != "" {
		read, err := shape.ReadFile(of.Setup)
		if err != nil {
			return "", fmt.Errorf("store %s: setup: %w; name a readable file of SQL statements", of.Name, err)
		}
		text = string(read) + "\n;\n"
	}
	more, err := t.setup()
	return text + more, err
}

// qualifierPattern matches a name that has a schema or an alias in front, as in shop.orders.
var qualifierPattern = regexp.MustCompile(`"?([\pL_][\pL\pN_$]*)"?\s*\.`)

// rejectSchemaNames returns an error if a statement names a schema, because such a statement could change
// tables outside of the trial.
func (t *Trial) rejectSchemaNames(ctx context.Context, db *sql.DB, setup string) error {
	var all []string
	rows, err := db.QueryContext(ctx, `select nspname from pg_catalog.pg_namespace where nspname not in ('pg_catalog', 'information_schema')`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return err
		}
		all = append(all, name)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	texts := map[string]string{"the setup": setup}
	for _, h := range t.Consumer.Handlers() {
		for _, s := range h.Statements {
			texts["a statement of "+h.At] += s.SQL + ";\n"
		}
	}
	if t.answersWithEffects() {
		for _, s := range t.Consumer.Handler.HTTP.Effects.Statements {
			texts["the statement "+s.Name+" of handler.http.effects"] = s.SQL
		}
	}
	for where, text := range texts {
		for _, found := range qualifierPattern.FindAllStringSubmatch(text, -1) {
			if slices.ContainsFunc(all, func(name string) bool { return strings.EqualFold(name, found[1]) }) {
				return fmt.Errorf("%s names the schema %s, and the test must not leave its own schema; write the names of tables without a schema", where, found[1])
			}
		}
	}
	return nil
}

// inSchemas returns the settings of a store with other schemas and no notifications.
func inSchemas(p *policy.Postgres, in schemas) (*policy.Postgres, error) {
	to, _, err := connectionStrings(p)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(to)
	if err != nil {
		return nil, errors.New("the connection string is invalid, so no other schema can be chosen in it")
	}
	options := u.Query()
	options.Set("search_path", in.users)
	u.RawQuery = options.Encode()
	return &policy.Postgres{URL: u.String(), Schema: in.own, Prefix: p.Prefix}, nil
}

func (d *postgres) columns(ctx context.Context, schema string) ([]column, error) {
	return readColumns(ctx, d.db, func(c *column) {
		c.tableSQL, c.valueSQL = sqltext.Quoted(schema)+"."+sqltext.Quoted(c.table), sqltext.Quoted(c.name)+"::text"
	},
		`select c.table_name, c.column_name, coalesce(c.column_default, '') || case c.is_identity when 'YES' then ' identity' else '' end
from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
where c.table_schema = $1 and t.table_type = 'BASE TABLE' order by 1, c.ordinal_position`, schema)
}
