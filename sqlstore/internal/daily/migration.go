package daily

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// Moved is the result of EndMove; see sqlstore.Moved.
type Moved struct {
	Copied, Removed int64
	Held            time.Duration
	Fenced          bool
}

// Settings of a move.
const (
	// The number of markers that one statement copies or removes.
	movedAtOnce = 5000
	// If a round copies at most fewLeft markers, EndMove blocks the writing of markers and copies the rest.
	fewLeft = 4 * movedAtOnce
	// The end of a move waits for transactions that write markers, and all later transactions of the consumer wait for
	// the end of the move. The first attempt waits for firstPatience, and each further attempt twice as long, up to
	// longestPatience.
	firstPatience, longestPatience = 20 * time.Millisecond, 5 * time.Second
	// The number of attempts to lock the table that all consumers share. Each attempt waits for firstPatience.
	fenceTries = 50
)

// EndMove ends a move to daily partitions.
func EndMove(ctx context.Context, db *database.DB, consumer string) (done Moved, err error) {
	if db.Postgres == nil || db.Days != nil {
		return done, fmt.Errorf("sqlstore: only a store in PostgreSQL of all consumers moves markers to days: %w", semel.ErrUnsupported)
	}
	m, err := moveOf(ctx, db, consumer)
	if err == nil && m.Moving {
		err = m.end(ctx, &done)
	}
	if err == nil {
		err = m.leave(ctx, &done)
	}
	return done, db.Answer("move to days", err)
}

// moveOf returns the move of a consumer, even if the move has ended.
func moveOf(ctx context.Context, db *database.DB, consumer string) (*move, error) {
	number, kind, err := movingTo(ctx, db, db.Pool, consumer)
	moving := err == nil
	if errors.Is(err, sql.ErrNoRows) {
		number, kind, err = Dated(ctx, db, db.Pool, consumer)
	}
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("no move of consumer %q to days has begun: %w", consumer, semel.ErrState)
	}
	if err != nil {
		return nil, err
	}
	idTime, err := kindOf(consumer, kind)
	if err != nil {
		return nil, err
	}
	m := &move{Days: &database.Days{DB: db, Number: number, Moving: moving, Dated: database.Dated{Consumer: consumer, IDTime: idTime}}}
	return m, m.load()
}

// copyPosition says how far markers are copied. All markers from transactions with a number below the field next are
// copied. All markers from later transactions have the time in the field at, or a later time.
type copyPosition struct{ next, at int64 }

// end copies in rounds until few markers are left, then blocks the writing of markers and copies the rest.
func (m *move) end(ctx context.Context, done *Moved) error {
	for _, text := range []string{m.moves.NoMoreByTime, m.moves.ByTime} {
		if _, err := m.DB.Pool.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	var from copyPosition
	for patience := firstPatience; ; patience = min(2*patience, longestPatience) {
		for {
			var found int64
			var err error
			if from, found, err = m.round(ctx, from, done); err != nil {
				return err
			}
			if found <= fewLeft {
				break
			}
		}
		began := time.Now()
		err := m.DB.Write(ctx, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, m.moves.Impatient, database.Milliseconds(patience, firstPatience)); err != nil {
				return err
			}
			return m.finish(ctx, tx, from, done)
		})
		if err == nil {
			done.Held = time.Since(began)
			return nil
		}
		if m.DB.Classify(err) != store.ClassContended {
			return err
		}
		if !timing.Wait(ctx, patience) { // other transactions run during this wait
			return ctx.Err()
		}
	}
}

// round waits until all currently open transactions have ended, and copies the markers that were written since the
// position from. round returns the position for the next round, and the number of markers that it examined.
func (m *move) round(ctx context.Context, from copyPosition, done *Moved) (next copyPosition, found int64, err error) {
	db := m.DB.Pool
	if err = db.QueryRowContext(ctx, m.moves.Running).Scan(&next.next, &next.at); err != nil {
		return from, 0, err
	}
	for ended := false; !ended; {
		if err = db.QueryRowContext(ctx, m.moves.Ended, next.next).Scan(&ended); err == nil && !ended && !timing.Wait(ctx, firstPatience) {
			err = ctx.Err()
		}
		if err != nil {
			return from, 0, err
		}
	}
	var kept []day
	if err = m.DB.Write(ctx, func(tx *sql.Tx) error { kept, err = m.ensurePartitions(ctx, tx); return err }); err != nil {
		return from, 0, err
	}
	found, copied, err := m.copyAll(ctx, db, from, kept, func(slice func(tx *sql.Tx) error) error { return m.DB.Write(ctx, slice) })
	done.Copied += copied
	return next, found, err
}

// copyAll copies the consumer's markers that follow a position. The function in runs the copying of one portion in a
// transaction. The results are the number of examined markers and the number of written markers.
func (m *move) copyAll(ctx context.Context, db database.Queryer, from copyPosition, kept []day, in func(func(tx *sql.Tx) error) error) (found, copied int64, err error) {
	scopes, err := m.scopesOf(ctx, db)
	for i := 0; i < len(scopes) && err == nil; i++ {
		var looked, wrote int64
		looked, wrote, err = m.copyScope(ctx, scopes[i], from, kept, in)
		found, copied = found+looked, copied+wrote
	}
	return found, copied, err
}

func (m *move) copyScope(ctx context.Context, scope int64, from copyPosition, kept []day, in func(func(tx *sql.Tx) error) error) (found, copied int64, err error) {
	low, high := kept[0].from, kept[len(kept)-1].to
	at, id := sql.NullInt64{Int64: from.at}, []byte{}
	for looked := int64(movedAtOnce); looked == movedAtOnce && err == nil; found += looked {
		var wrote, odd int64
		err = in(func(tx *sql.Tx) error {
			return tx.QueryRowContext(ctx, m.moves.Copy, scope, at.Int64, id, movedAtOnce, low, high).Scan(&looked, &wrote, &odd, &at, &id)
		})
		if err == nil && odd > 0 {
			err = fmt.Errorf("consumer %q has markers whose ids have another spelling than in a table of days, so that their duplicates would count as fresh; the move can end after these markers were reaped: %w", m.Consumer, semel.ErrState)
		}
		copied += wrote
	}
	return found, copied, err
}

// finish ends the move in one transaction. The transaction of finish waits for other transactions that write markers,
// and then blocks new transactions.
func (m *move) finish(ctx context.Context, tx *sql.Tx, from copyPosition, done *Moved) error {
	if _, err := tx.ExecContext(ctx, m.moves.HoldOff); err != nil {
		return err
	}
	kept, err := m.ensurePartitions(ctx, tx)
	if err != nil {
		return err
	}
	_, copied, err := m.copyAll(ctx, tx, from, kept, func(slice func(tx *sql.Tx) error) error { return slice(tx) })
	if err != nil {
		return err
	}
	name, first, last := []byte(m.Consumer), kept[0], kept[len(kept)-1]
	if _, err := tx.ExecContext(ctx, m.moves.CopyOutside, name, first.from, last.to); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, m.moves.Settle, name); err != nil {
		return err
	}
	if err := m.takeNames(ctx, tx); err != nil {
		return err
	}
	if err := database.ExecOne(ctx, tx, fmt.Errorf("the move of consumer %q was ended by another process; check again: %w", m.Consumer, semel.ErrState), m.moves.EndMoving, name, first.name, last.next, first.from, last.to); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, m.SQL.MoveRows, name)
	done.Copied += copied
	return err
}

// takeNames renames the table and its partitions to their final names.
func (m *move) takeNames(ctx context.Context, tx *sql.Tx) error {
	days, err := listPartitions(ctx, m.Days, tx)
	if err != nil {
		return err
	}
	if err := execAll(ctx, tx, m.moves.TakeName, m.named.CreateReadable); err != nil {
		return err
	}
	for _, p := range days {
		date := dateOf(p.name)
		if !strings.HasSuffix(strings.Trim(p.name, `"`), filling+"_"+date) {
			continue // an operator created this partition
		}
		if _, err := tx.ExecContext(ctx, strings.NewReplacer("{day}", p.name, "{date}", date).Replace(m.moves.RenameDay)); err != nil {
			return err
		}
	}
	return nil
}

// leave makes the table that all consumers share reject markers of the consumer, and removes the consumer's markers
// from this table.
func (m *move) leave(ctx context.Context, done *Moved) (err error) {
	if _, err = m.DB.Pool.ExecContext(ctx, m.moves.NoMoreByTime); err != nil {
		return err
	}
	var left bool
	if err = m.DB.Pool.QueryRowContext(ctx, m.moves.Left, []byte(m.Consumer)).Scan(&left); err != nil {
		return err
	}
	if !left {
		err = m.DB.Pool.QueryRowContext(ctx, m.moves.Fenced).Scan(&done.Fenced)
		if err == nil && !done.Fenced {
			err = fmt.Errorf("the markers of consumer %q are in a table of days and were never moved there: %w", m.Consumer, semel.ErrState)
		}
		return err
	}
	scopes, err := m.scopesOf(ctx, m.DB.Pool)
	if err != nil {
		return err
	}
	if done.Fenced, err = m.fence(ctx, scopes); err != nil {
		return err
	}
	for _, scope := range scopes {
		if err := m.clearMarkers(ctx, scope, done); err != nil {
			return err
		}
	}
	if !done.Fenced {
		return nil
	}
	return m.DB.Exec(ctx, m.moves.Cleared, []byte(m.Consumer))
}

// fence makes the table that all consumers share reject the consumer's markers. The result fenced is false if the lock
// of the table was not free.
func (m *move) fence(ctx context.Context, scopes []int64) (fenced bool, err error) {
	text := strings.Replace(m.moves.Fence, "{list}", database.Array(scopes), 1)
	for range fenceTries {
		if err = m.DB.Pool.QueryRowContext(ctx, m.moves.Fenced).Scan(&fenced); err != nil || fenced {
			return fenced, err
		}
		err = m.DB.Write(ctx, func(tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, m.moves.Impatient, database.Milliseconds(firstPatience, firstPatience)); err != nil {
				return err
			}
			_, err := tx.ExecContext(ctx, text)
			return err
		})
		if err == nil {
			return true, nil
		}
		if m.DB.Classify(err) != store.ClassContended {
			return false, err
		}
		if !timing.Wait(ctx, firstPatience) {
			return false, ctx.Err()
		}
	}
	return false, nil
}

// clearMarkers removes the markers of a scope (a consumer, source and generation) from the table that all consumers
// share.
func (m *move) clearMarkers(ctx context.Context, scope int64, done *Moved) error {
	for looked := int64(movedAtOnce); looked == movedAtOnce; {
		err := m.DB.Write(ctx, func(tx *sql.Tx) error {
			var gone int64
			err := tx.QueryRowContext(ctx, m.moves.Clear, scope, movedAtOnce).Scan(&looked, &gone)
			done.Removed += gone
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
