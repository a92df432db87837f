package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Dated says whose markers lie in a table of days. See Store.Dated.
type Dated struct {
	// Consumer is the name of the only consumer that uses the store.
	Consumer string
	// IDTime is the kind of all of its ids. Days of Snowflakes are told by their decimal
	// texts: one of before May 2018, which has fewer digits, counts as of another time.
	IDTime identity.IDTime
	// Back is how many days before this one are made with the table: those of messages that
	// are still to come. At most 3650. It means nothing when the table is there.
	Back int
	// Move has the first call move markers of the consumer from the table of all into its
	// own, in one transaction. No process of the consumer may run meanwhile: one that was
	// started before would go on marking where nobody looks. Without it such markers are an
	// error. BeginMove and EndMove move them while processes work.
	Move bool
}

// mostBack bounds Dated.Back.
const mostBack = 3650

// Dated returns a store on the same database for one consumer, whose markers lie in a
// table of their own of a partition for each day, by the time that ids carry. A day that is
// past its retention is dropped, with no dead rows and hardly any work, in place of deleting
// its markers one by one; see store.Limits.PartitionedBy for what becomes of ids outside of the days
// that are kept. Ids that are not of the kind are no usable identities.
//
// The first call makes the table, which takes the right to create tables in the schema; so
// does whatever makes days, at least one in four days: Retain, Progressed and Advance. An
// error that wraps semel.ErrState: the consumer has another kind of ids there, or markers in
// the table of all, where nobody would look for them, unless BeginMove was called. SQLite,
// and a store that adopted a table: semel.ErrUnsupported.
func (s *Store) Dated(ctx context.Context, o Dated) (*Store, error) { return s.openDays(ctx, o) }

// openDays returns the store of a consumer whose markers lie in days.
func (s *Store) openDays(ctx context.Context, o Dated) (*Store, error) {
	if err := s.keepsDays(&o); err != nil {
		return nil, err
	}
	d := &days{store: s, Dated: o}
	err := d.register(ctx)
	if err == nil {
		err = d.load()
	}
	if err != nil {
		return nil, s.answer("markers by day", err)
	}
	own, err := d.view()
	if err != nil {
		return nil, err
	}
	if err := own.makeDays(ctx); err != nil {
		return nil, s.answer("markers by day", err)
	}
	return own, nil
}

// keepsDays says why the store cannot keep such days.
func (s *Store) keepsDays(o *Dated) error {
	switch {
	case s.postgres == nil || !s.marksAlone() || s.days != nil:
		return fmt.Errorf("sqlstore: only a store in PostgreSQL that marks in no other table keeps markers by day: %w", semel.ErrUnsupported)
	case ceilings[o.IDTime] == "":
		return fmt.Errorf("sqlstore: markers are kept by day for ids that carry a time, not %v: %w", o.IDTime, semel.ErrUnsupported)
	case o.Consumer == "" || o.Back < 0 || o.Back > mostBack:
		return fmt.Errorf("sqlstore: markers by day need the name of a consumer, and 0 to %d days back", mostBack)
	}
	return nil
}

// view is the store whose markers these are.
func (d *days) view() (*Store, error) {
	s := d.store
	names := strings.NewReplacer("{prefix}markers", s.names.Replace("{prefix}"+d.name()), "{prefix}", s.names.Replace("{prefix}"), "{name}", s.prefix)
	own, err := openAs(s.db, s.dialect, Options{Prefix: s.prefix}, names)
	if err != nil {
		return nil, err
	}
	own.names, own.crypt, own.guards, own.level, own.writers, own.beside, own.days = s.names, s.crypt, s.guards, s.level, s.writers, d, d
	own.postgres = own.postgres.WithDays(&d.sql, s.postgres)
	own.postgres.Look = strings.Replace(own.postgres.Look, "{owned}", own.postgres.Owned, 1)
	own.sql = &own.postgres.Statements
	table := s.names.Replace("{prefix}" + d.name()) // its days are dropped: row by row goes what stands aside
	for _, text := range []*string{&own.postgres.Place, &own.postgres.Part, &own.postgres.ReapRows} {
		*text = strings.ReplaceAll(*text, table, table+"_aside")
	}
	own.postgres.Reap = strings.Replace(own.postgres.Reap, "{part}", own.postgres.Part, 1)
	return own, nil
}

// days are the markers of one consumer by day.
type days struct {
	Dated
	store  *Store // of all
	number int64
	// moving: the markers were in the table of all when the store was opened, and moved to
	// days since, or not yet. See day_migration.go.
	moving bool
	sql    sqlform.Dated
}

// name is the table's, without the prefix.
func (d *days) name() string { return "markers_" + strconv.FormatInt(d.number, 10) }

// ceilings are the keys that lie above all ids of a kind, of those that carry a time.
var ceilings = map[identity.IDTime]string{identity.UUIDv7: `\x02`, identity.ULID: `\x0038`, identity.Snowflake: `\x003a`}

// load reads the statements with the table's names.
func (d *days) load() error { return d.fill(&d.sql, "dated.sql", "") }

// fill reads a file of statements, with what the table's name has behind it.
func (d *days) fill(statements any, file, behind string) error {
	table := d.store.names.Replace("{prefix}" + d.name() + behind)
	names := strings.NewReplacer("{markers}", table, "{name}", d.store.prefix+d.name(), "{number}", strconv.FormatInt(d.number, 10),
		"{kind}", d.IDTime.String(), "{ceiling}", ceilings[d.IDTime], "{prefix}", d.store.names.Replace("{prefix}"))
	texts, err := d.store.dialect.load(names, file)
	if err != nil {
		return err
	}
	return sqlform.Fill(statements, texts)
}

// register finds the consumer's number, or makes its table.
func (d *days) register(ctx context.Context) error {
	found, err := d.find(ctx, d.store.db)
	if err != nil || found {
		return err
	}
	return d.store.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, d.store.postgres.LockDated); err != nil {
			return err
		}
		if found, err := d.find(ctx, tx); err != nil || found {
			return err
		}
		return d.create(ctx, tx)
	})
}

// queries is a transaction, or a database.
type queries interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func (d *days) find(ctx context.Context, db queries) (bool, error) {
	number, kind, err := d.store.dated(ctx, db, d.Consumer)
	if errors.Is(err, sql.ErrNoRows) {
		number, kind, err = d.store.movingTo(ctx, db, d.Consumer)
		d.moving = err == nil
	}
	d.number = number
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return false, nil
	case err == nil && kind != d.IDTime.String():
		err = fmt.Errorf("the markers of consumer %q are kept by day for ids of the kind %s, not %v; use that kind, or another consumer's name: %w", d.Consumer, kind, d.IDTime, semel.ErrState)
	}
	return err == nil, err
}

func (d *days) create(ctx context.Context, tx *sql.Tx) error {
	// A table of days whose row in dated is gone may be this consumer's: another table would
	// let everything take effect again.
	if err := d.store.faults(ctx, d.store.sql.LintRows); err != nil {
		return err
	}
	var elsewhere bool
	if err := tx.QueryRowContext(ctx, d.store.postgres.UndatedMarkers, []byte(d.Consumer)).Scan(&elsewhere); err != nil {
		return err
	}
	if elsewhere && !d.Move {
		return fmt.Errorf("consumer %q has markers in %smarkers, where a store of days does not look; move them, as docs/operations.md shows under \"Dropping days of markers\": %w", d.Consumer, d.store.prefix, semel.ErrState)
	}
	if err := tx.QueryRowContext(ctx, d.store.postgres.NewDated, []byte(d.Consumer), d.IDTime.String(), d.Back).Scan(&d.number); err != nil {
		return err
	}
	if err := d.load(); err != nil {
		return err
	}
	if err := execAll(ctx, tx, d.sql.Create, d.sql.CreateAside, d.sql.CreateReadable); err != nil {
		return err
	}
	if !elsewhere {
		return nil
	}
	return d.move(ctx, tx)
}

// execAll sends statements one by one, of which a text may hold several.
func execAll(ctx context.Context, tx *sql.Tx, texts ...string) error {
	for _, text := range texts {
		for statement := range strings.SplitSeq(text, ";\n\n") {
			if strings.HasPrefix(statement, "--") {
				continue // a comment of the next
			}
			if _, err := tx.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
	}
	return nil
}

// move moves the consumer's markers into its table, of which nobody knows yet.
func (d *days) move(ctx context.Context, tx *sql.Tx) error {
	var odd int64
	if err := tx.QueryRowContext(ctx, d.sql.OddlySpelled, []byte(d.Consumer)).Scan(&odd); err != nil {
		return err
	}
	if odd > 0 {
		return fmt.Errorf("consumer %q has %d markers whose ids are spelled in another case than a store of days spells them, so that their copies would be fresh; keep them where they are: %w", d.Consumer, odd, semel.ErrState)
	}
	for {
		w, err := d.wanted(ctx, tx)
		if err != nil {
			return err
		}
		if w == nil {
			break
		}
		if err := d.make(ctx, tx, w); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, d.sql.RaiseHigh, w.next, w.to); err != nil {
			return err
		}
	}
	for _, statement := range []string{d.sql.Move, d.sql.MoveRows} {
		if _, err := tx.ExecContext(ctx, statement, []byte(d.Consumer)); err != nil {
			return err
		}
	}
	return nil
}

// Admit implements beside.
func (d *days) Admit(consumer, _ string, generation int64) error {
	if generation != 0 {
		return fmt.Errorf("the markers of consumer %q are kept by day, by the time of ids of one derivation: %w", consumer, semel.ErrUnsupported)
	}
	if consumer != d.Consumer {
		return fmt.Errorf("consumer %q cannot use the markers by day of consumer %q: %w", consumer, d.Consumer, semel.ErrState)
	}
	return nil
}

// Fit implements beside: one spelling of an id, whose order is that of its time.
func (d *days) Fit(_, id string) (string, error) {
	spelled := strings.ToLower(id)
	if d.IDTime == identity.ULID {
		spelled = strings.ToUpper(id)
	}
	if _, ok := d.IDTime.Of(spelled); !ok {
		return "", fmt.Errorf("it is no %v, by whose time markers are kept", d.IDTime)
	}
	if d.moving && spelled != id { // processes of before take it for another id
		return "", fmt.Errorf("it is spelled in another case than %q, which a consumer that moves to days does not understand", spelled)
	}
	return spelled, nil
}

// Check implements beside.
func (d *days) Check(ctx context.Context) error { return d.store.faults(ctx, d.sql.Lint) }

// Missing implements beside.
func (d *days) Missing(err error) error { return err }

// Judged is the verdict on a mark that met this marker, or none, in a table of days, for
// drivers of their own; the mark has the key under which its marker stands.
func Judged(c sqlform.Crypt, m *sqlform.Mark, there sqlform.Marker) (store.Verdict, error) {
	a := there.Judged(c, m)
	if a.Aside {
		m.SetAside()
	}
	if a.Unready && m.Asks() {
		return a.Verdict, &storeError{"mark", store.ClassDown, errUnready}
	}
	return a.Verdict, nil
}

var errUnready = errors.New("no day is made for tomorrow's markers, so that nobody can tell what is from the future; what makes days has failed for days: run semel reap --once as the owner of the tables, and read what it says")

// setAside writes those marks of ids outside of what is kept that only say what became of
// their messages.
func (l lists) setAside(ctx context.Context, marks []sqlform.Mark, seen []int, verdicts []store.Verdict) error {
	var outside []int
	for _, i := range seen {
		if verdicts[i].Kind == store.Old && !marks[i].Asks() {
			outside = append(outside, i)
			verdicts[i] = store.Verdict{}
		}
	}
	if len(outside) == 0 {
		return nil
	}
	if err := l.insert(ctx, l.store.days.sql.Aside, marks, outside, verdicts); err != nil {
		return err
	}
	var met []int // by another of the batch, or of a batch that was faster
	for _, i := range outside {
		if verdicts[i].Kind == store.Fresh {
			marks[i].SetAside()
		} else {
			met = append(met, i)
		}
	}
	if len(met) == 0 {
		return nil
	}
	return l.judge(ctx, marks, nil, met, verdicts)
}

// noPartition reports whether a marker met no partition of its day: it was dropped after
// the marks of what is kept were read, and another try reads them anew.
func (s *Store) noPartition(err error) bool {
	return s.days != nil && sqlState(err) == "23514" && fieldOf(err, "Routine") == "ExecFindPartition"
}
