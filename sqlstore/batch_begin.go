package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/leases"
	"github.com/semel-go/semel/sqlstore/internal/marking"
	"github.com/semel-go/semel/sqlstore/internal/ordering"
	"github.com/semel-go/semel/store"
)

// start writes the guard and the markers.
func (b *batch) start(ctx context.Context, o store.TxOptions) ([]store.Verdict, error) {
	if b.DB.Postgres != nil {
		return b.postgresStart(ctx, o)
	}
	return b.sqliteStart(ctx)
}

// lookAt sets the verdicts of the messages that come from claimed rows.
func (b *batch) lookAt(ctx context.Context, marks []store.Mark, verdicts []store.Verdict) error {
	var claims []store.Claim
	var at []int
	for i := range marks {
		if marks[i].Claim.Token != 0 {
			claims, at = append(claims, marks[i].Claim), append(at, i)
			verdicts[i] = store.Verdict{Kind: store.ClaimLost}
		}
	}
	if len(claims) == 0 {
		return nil
	}
	return leases.ClaimsOf(b.DB).Look(ctx, b.DB, b.InTx, claims, func(k int, done bool) { verdicts[at[k]] = sqlform.Standing(done) })
}

// lockGeneration checks that the batch may use its generation, and locks the generation until the batch ends.
func (b *batch) lockGeneration(ctx context.Context, w generations.Working) error {
	if w.In == 0 {
		return nil
	}
	var one int64
	err := b.InTx.QueryRowContext(ctx, b.DB.SQL.Working, sqlform.WorkingArguments(w)...).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return sqlform.NotWorking(w)
	}
	return err
}

// lookAtLines sets the verdicts of messages whose lane has waiting rows.
func (b *batch) lookAtLines(ctx context.Context, marks []store.Mark, verdicts []store.Verdict) error {
	busy, err := ordering.Busy(ctx, b.DB, b.InTx, marks, lines.Asked(marks))
	if err == nil {
		lines.Judge(marks, busy, verdicts)
	}
	return err
}

// Defaults of store.TxOptions in PostgreSQL.
const (
	// The maximum wait for locks while the markers are written.
	defaultMarkLock   = 10 * time.Second
	defaultEffectLock = 10 * time.Second
	// The default of store.TxOptions.Idle, which is longer than the default timeout of a handler.
	defaultIdle = time.Minute
)

// leastLimit is the smallest time limit for statements that is set on the server. The handler's context ends a
// statement of the handler earlier. The server's limit also applies to the store's own statements at the end of a
// batch.
const leastLimit = time.Second

// statementLimit formats store.TxOptions.Statement as the value of a setting.
func statementLimit(d time.Duration) string {
	if d <= 0 {
		return noLimit
	}
	return database.Milliseconds(max(d, leastLimit), 0)
}

// The value with which the server's own limit stays in force.
const noLimit = "0"

// postgresStart writes settings, guard and markers with one statement. If the batches of the consumer run one after the
// other, postgresStart first takes the consumer's lock, with a statement that has a lock timeout of its own. The
// timeout for markers therefore does not limit the wait for the consumer's lock.
func (b *batch) postgresStart(ctx context.Context, o store.TxOptions) ([]store.Verdict, error) {
	b.guarded = true
	idle := database.Milliseconds(o.Idle, defaultIdle)
	if o.Serial && len(b.marks) > 0 {
		if _, err := b.InTx.ExecContext(ctx, b.DB.Postgres.Serial, b.marks[0].Scope, idle, statementLimit(o.Turn)); err != nil {
			return nil, err
		}
	}
	return marking.Lists{DB: b.DB, Tx: b.InTx, Own: true}.Mark(ctx, b.marks, b.former, b.DB.Postgres.Begin, idle,
		database.Milliseconds(o.MarkLock, defaultMarkLock), database.Milliseconds(o.EffectLock, defaultEffectLock), statementLimit(o.Statement))
}

// postgresBroken reports whether the guard is not visible. After a handler's ROLLBACK, the connection is in another
// transaction or in no transaction.
func (b *batch) postgresBroken() bool {
	var guarded bool
	err := b.InTx.QueryRow(b.DB.SQL.Guarded).Scan(&guarded)
	return err != nil || !guarded
}

func (b *batch) sqliteStart(ctx context.Context) ([]store.Verdict, error) {
	done, err := b.InTx.ExecContext(ctx, b.DB.SQL.Guard)
	if err == nil {
		b.guarded, err = guardedBy(b.DB, done)
	}
	if err != nil {
		return nil, err
	}
	return marking.Lists{DB: b.DB, Tx: b.InTx, Own: true}.Mark(ctx, b.marks, b.former, b.DB.SQL.Mark)
}

var errUnguarded = errors.New("this connection does not enforce foreign keys, the one at start did: " +
	"set pragma foreign_keys where the database is opened, not with a statement")

func guardedBy(db *database.DB, done sql.Result) (bool, error) {
	n, err := done.RowsAffected()
	if err == nil && n == 0 && db.Guards {
		err = errUnguarded
	}
	return n == 1, err
}

// sqliteBroken asks the database whether the transaction is still open, because SQLite rolls back the whole transaction
// after some errors. SQLite runs in this process, so this query needs no network.
func (b *batch) sqliteBroken() bool {
	if b.asks == nil {
		var err error
		if b.asks, err = b.InTx.Prepare(b.DB.SQL.Guarded); err != nil {
			return true
		}
	}
	done, err := b.asks.Exec()
	if err != nil {
		b.Doubt(err)
		return true
	}
	guards, err := done.RowsAffected()
	return err != nil || b.guarded && guards != 1
}

// lookAtStreams locks the streams of the messages in a batch, and checks their versions.
func (b *batch) lookAtStreams(ctx context.Context, o store.TxOptions, marks []store.Mark, verdicts []store.Verdict) error {
	b.streams = streams.Of(marks)
	all := b.streams.All()
	take := b.sqliteTake
	if b.DB.Postgres != nil {
		take = b.postgresTake
	}
	if len(all) > 0 {
		if err := take(ctx, o, all); err != nil {
			return err
		}
	}
	b.streams.Judge(verdicts)
	return nil
}

func (b *batch) postgresTake(ctx context.Context, o store.TxOptions, all []*streams.Stream) error {
	p, a := b.DB.Postgres, ordering.StreamColumns(all)
	if _, err := b.InTx.ExecContext(ctx, p.KnowStreams, a[0], a[1], a[2], database.Milliseconds(o.MarkLock, defaultMarkLock)); err != nil {
		return err
	}
	taken := 0
	err := database.EachRow(ctx, b.InTx, p.TakeStreams, func(rows *sql.Rows) error {
		var k int
		var last, version int64
		var sum sql.RawBytes
		if err := rows.Scan(&k, &last, &version, &sum); err != nil {
			return err
		}
		all[k-1].Last, all[k-1].Print = last, b.DB.Crypt.ReadPrint(sqlform.PrintOfStream, all[k-1].Name, version, sum)
		taken++
		return nil
	}, a[0], a[1], database.Milliseconds(o.EffectLock, defaultEffectLock))
	if err != nil {
		return err
	}
	return ordering.AllTaken(taken, len(all))
}

func (b *batch) sqliteTake(ctx context.Context, _ store.TxOptions, all []*streams.Stream) error {
	l := b.DB.SQLite
	for _, s := range all {
		if _, err := b.InTx.ExecContext(ctx, l.KnowStream, s.Scope, s.Name, s.Last); err != nil {
			return err
		}
		var version int64
		var sum []byte
		if err := b.InTx.QueryRowContext(ctx, l.TakeStream, s.Scope, s.Name).Scan(&s.Last, &version, &sum); err != nil {
			return err
		}
		s.Print = b.DB.Crypt.ReadPrint(sqlform.PrintOfStream, s.Name, version, sum)
	}
	return nil
}
