package sqlstore

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/adoption"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/marking"
	"github.com/semel-go/semel/store"
)

// Seed are the options of Store.Seed.
type Seed struct {
	// Consumer and Source are the other parts of the identities. Source is the source that the consumer's Identity
	// finds in messages; empty if the Identity finds no source.
	Consumer, Source string
	// Table is the name of the other table as in SQL, with its schema if the search_path does
	// not include it.
	Table string
	// ID is the column of ids, spelled as in the catalog. In PostgreSQL, the type of the column may be text, varchar,
	// char, uuid, bytea or an integer; in SQLite any type except a fraction. Ids are compared byte for byte: a uuid is
	// written in lower case, an integer in decimal. An index that begins with the column of ids makes reading
	// efficient.
	ID string
	// Where, if not empty, is an SQL condition that selects rows, such as "status = 'done'". Where is inserted
	// into the statement unchanged.
	Where string
	// Batch is the number of ids for which one transaction writes markers; the default is 1,000, at most 10,000.
	Batch int
	// Progress, if not nil, is called with the sums after each transaction.
	Progress func(Seeded)
}

// Seeded is the progress or the result of a call of Seed.
type Seeded struct {
	// Read is the number of ids that were read. Written is the number of ids that had no marker before.
	Read, Written int64
	// Unusable is the number of ids that no message can have: empty ids, and ids longer than semel.MaxID.
	Unusable int64
	// Resumed is true if the call continued an interrupted call of Seed. If Resumed is true, Read and Written include
	// the earlier part.
	Resumed bool
}

const (
	defaultSeed = 1_000
	mostSeed    = 10_000
)

// Seed writes markers for the ids in another table, so that each id counts as applied, without a fingerprint. Use Seed
// if the consumer replaces other code. Existing markers stay unchanged. A message that is consumed before its id is
// seeded takes effect again. So stop the other code, seed, and then start the consumer. A second seeding reads all ids,
// and writes markers for new ids.
//
// Each batch is a transaction that also stores the position. After an error or the end of ctx, the completed batches
// stay. The next call of Seed with the same arguments continues after the completed batches, in the order of the ids.
func (s *Store) Seed(ctx context.Context, o Seed) (Seeded, error) {
	w, err := newSeeder(ctx, s.db, o)
	if err != nil {
		return Seeded{}, fmt.Errorf("sqlstore: seeding from %s: %w", o.Table, err)
	}
	for {
		done, err := w.batch(ctx)
		if err != nil {
			return w.sum, fmt.Errorf("sqlstore: seeding from %s: %d ids were read and have markers; seed again to continue: %w", o.Table, w.sum.Read, s.db.Hint(err))
		}
		if o.Progress != nil {
			o.Progress(w.sum)
		}
		if done {
			return w.sum, nil
		}
	}
}

// seeder reads a table page by page.
type seeder struct {
	store *database.DB
	Seed
	first, next string // statements
	scope       int64
	lane        string // name under which the store keeps the position
	last        *oldID // the last id read; nil at the start
	sum         Seeded
}

// oldID is a value of the id column. The field kind is needed for SQLite, because values of different types may have
// the same bytes.
type oldID struct {
	kind  string
	bytes []byte
}

func newSeeder(ctx context.Context, db *database.DB, o Seed) (*seeder, error) {
	if o.Batch == 0 {
		o.Batch = defaultSeed
	}
	switch {
	case o.Batch < 1 || o.Batch > mostSeed:
		return nil, fmt.Errorf("a batch of %d ids: use 1 to %d", o.Batch, mostSeed)
	case o.Consumer == "":
		return nil, errors.New("no consumer is named: the markers would belong to none")
	case strings.HasPrefix(o.Source, "semel:"):
		return nil, fmt.Errorf("the source %q begins with semel:, which is reserved", o.Source)
	}
	table, err := adoption.Describe(ctx, db.Pool, db.SQL, o.Table)
	if err != nil {
		return nil, db.Hint(err)
	}
	column, err := table.IDColumn(o.ID, db.Dialect.Ids)
	if err != nil {
		return nil, err
	}
	w := &seeder{store: db, Seed: o}
	if w.scope, err = marking.New(db).Scope(ctx, o.Consumer, o.Source, 0); err != nil {
		return nil, err
	}
	w.write(table, column)
	return w, w.resume(ctx, table, column)
}

// write inserts the names and the condition into the statements.
func (w *seeder) write(t *adoption.Table, c *adoption.Column) {
	value, last := w.store.Dialect.Old(c)
	names := strings.NewReplacer("{table}", t.Name, "{id}", c.Quoted, "{value}", value, "{last}", last)
	condition := w.Where
	if condition == "" {
		condition = "true"
	}
	put := func(statement string) string {
		return strings.Replace(names.Replace(statement), "{where}", condition+"\n", 1)
	}
	w.first, w.next = put(w.store.SQL.SeedFirst), put(w.store.SQL.SeedNext)
}

// resume continues an interrupted call of Seed for the same rows.
func (w *seeder) resume(ctx context.Context, t *adoption.Table, c *adoption.Column) error {
	sum := sha256.New()
	for _, part := range []string{t.Name, c.Name, w.Where, w.Source} {
		fmt.Fprintf(sum, "%d:%s,", len(part), part)
	}
	w.lane = "seed of " + w.Table + " " + hex.EncodeToString(sum.Sum(nil)[:8])
	p, found, err := loadPosition(ctx, w.store, w.Consumer, w.lane)
	if err != nil || !found {
		return err
	}
	kind, value, ok := strings.Cut(string(p.Check), ":")
	if !ok {
		return fmt.Errorf("the position %q of consumer %s can't be read: delete it from the table of positions", w.lane, w.Consumer)
	}
	w.last = &oldID{kind, []byte(value)}
	w.sum = Seeded{Read: p.Offset, Written: p.Length, Resumed: true}
	return nil
}

// batch writes markers for the next ids in a transaction. The result done is true if no ids are left.
func (w *seeder) batch(ctx context.Context) (done bool, err error) {
	sum := w.sum
	var last *oldID
	err = w.store.Write(ctx, func(tx *sql.Tx) error {
		ids, err := w.page(ctx, tx)
		if err != nil {
			return err
		}
		done = len(ids) < w.Batch
		sum.Read += int64(len(ids))
		marks := w.marks(ids)
		sum.Unusable += int64(len(ids) - len(marks))
		written, err := seed(ctx, w.store, tx, marks)
		if err != nil {
			return err
		}
		sum.Written += written
		if done {
			_, err = tx.ExecContext(ctx, w.store.SQL.ForgetPosition, sqlform.Plain(w.Consumer), sqlform.Plain(w.lane))
			return err
		}
		last = &ids[len(ids)-1]
		_, err = tx.ExecContext(ctx, w.store.SQL.SavePosition, sqlform.Plain(w.Consumer), sqlform.Plain(w.lane),
			sum.Read, sum.Written, []byte(last.kind+":"+string(last.bytes)))
		return err
	})
	if err == nil {
		w.sum, w.last = sum, last
	}
	return done, err
}

func (w *seeder) page(ctx context.Context, tx *sql.Tx) ([]oldID, error) {
	text, args := w.first, []any{w.Batch}
	if w.last != nil {
		text, args = w.next, []any{w.Batch, w.last.bytes, w.last.kind}
	}
	return database.List(ctx, tx, text, func(rows *sql.Rows) (id oldID, err error) {
		err = rows.Scan(&id.kind, &id.bytes)
		if err == nil && id.kind == "real" {
			err = fmt.Errorf("column %s contains %s, a fraction, which cannot be an id: %w", w.ID, id.bytes, semel.ErrSchema)
		}
		return id, err
	}, args...)
}

func (w *seeder) marks(ids []oldID) []store.Mark {
	marks := make([]store.Mark, 0, len(ids))
	for _, id := range ids {
		if len(id.bytes) > 0 && len(id.bytes) <= semel.MaxID {
			marks = append(marks, store.Mark{Scope: w.scope, ID: id.bytes, As: store.Applied})
		}
	}
	return marks
}

// seed writes the missing markers, and returns the number of written markers.
func seed(ctx context.Context, db *database.DB, tx *sql.Tx, marks []store.Mark) (written int64, err error) {
	forms := sqlform.Marks(marks)
	verdicts := make([]store.Verdict, len(marks))
	l := marking.Lists{DB: db, Tx: tx, Own: true}
	for chunk := range l.Chunks(sqlform.Sorted(forms)) {
		if len(chunk) == 0 {
			continue
		}
		if err := l.Insert(ctx, db.SQL.Mark, forms, chunk, verdicts); err != nil {
			return 0, err
		}
	}
	for _, v := range verdicts {
		if v.Kind == store.Fresh {
			written++
		}
	}
	return written, nil
}
