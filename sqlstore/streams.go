package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/store"
)

// lookAtStreams takes the streams that a batch's marks ask for, and judges the versions.
func (b *batch) lookAtStreams(ctx context.Context, o store.TxOptions, marks []store.Mark, verdicts []store.Verdict) error {
	b.streams = streams.Of(marks)
	all := b.streams.All()
	take := b.sqliteTake
	if b.store.postgres != nil {
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
	p, a := b.store.postgres, streamColumns(all)
	if _, err := b.tx.ExecContext(ctx, p.KnowStreams, a[0], a[1], a[2], milliseconds(o.MarkLock, defaultMarkLock)); err != nil {
		return err
	}
	rows, err := b.tx.QueryContext(ctx, p.TakeStreams, a[0], a[1], milliseconds(o.EffectLock, defaultEffectLock))
	if err != nil {
		return err
	}
	defer rows.Close()
	taken := 0
	for rows.Next() {
		var k int
		var last, version int64
		var sum sql.RawBytes
		if err := rows.Scan(&k, &last, &version, &sum); err != nil {
			return err
		}
		all[k-1].Last, all[k-1].Print = last, b.store.crypt.ReadPrint(sqlform.PrintOfStream, all[k-1].Name, version, sum)
		taken++
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return AllTaken(taken, len(all))
}

// AllTaken is an error if not all streams were found that were just written: for drivers
// of their own.
func AllTaken(taken, all int) error {
	if taken == all {
		return nil
	}
	return &storeError{"streams", store.ClassContended, errors.New("a stream is neither written nor there: it was removed while it was taken, or another transaction that is newer wrote it")}
}

// streamColumns are streams as lists: scopes, names and last versions.
func streamColumns(all []*streams.Stream) []any {
	flat := make([]any, 0, 3*len(all))
	for _, s := range all {
		flat = append(flat, s.Scope, s.Name, s.Last)
	}
	return arrays(3, flat)
}

// streamPrints are the fingerprints of the streams' last contents as lists: versions and sums.
func (s *Store) streamPrints(all []*streams.Stream) []any {
	flat := make([]any, 0, 2*len(all))
	for _, of := range all {
		version, sum := s.crypt.Print(sqlform.PrintOfStream, of.Name, of.Print)
		flat = append(flat, version, sum)
	}
	return arrays(2, flat)
}

func (b *batch) sqliteTake(ctx context.Context, _ store.TxOptions, all []*streams.Stream) error {
	l := b.store.sqlite
	for _, s := range all {
		if _, err := b.tx.ExecContext(ctx, l.KnowStream, s.Scope, s.Name, s.Last); err != nil {
			return err
		}
		var version int64
		var sum []byte
		if err := b.tx.QueryRowContext(ctx, l.TakeStream, s.Scope, s.Name).Scan(&s.Last, &version, &sum); err != nil {
			return err
		}
		s.Print = b.store.crypt.ReadPrint(sqlform.PrintOfStream, s.Name, version, sum)
	}
	return nil
}

// beginStreams writes where streams begin that have not begun.
func (s *Store) beginStreams(ctx context.Context, tx *sql.Tx, begun []*streams.Stream) error {
	if len(begun) == 0 {
		return nil
	}
	if s.postgres != nil {
		a := streamColumns(begun)
		_, err := tx.ExecContext(ctx, s.postgres.BeginStreams, a[0], a[1], a[2])
		return err
	}
	for _, b := range begun {
		if _, err := tx.ExecContext(ctx, s.sqlite.BeginStream, b.Scope, b.Name, b.Last); err != nil {
			return err
		}
	}
	return nil
}

// moveStreams moves streams in a transaction that has them, and frees what waited for
// that. It reports whether anything did.
func (s *Store) moveStreams(ctx context.Context, tx *sql.Tx, moved []*streams.Stream) (freed bool, err error) {
	if len(moved) == 0 {
		return false, nil
	}
	if s.postgres != nil {
		n, args := 0, append(streamColumns(moved), s.streamPrints(moved)...)
		places, numbers := streams.Turns(moved)
		flat := make([]any, 0, 2*len(places))
		for i := range places {
			flat = append(flat, places[i], numbers[i])
		}
		err := tx.QueryRowContext(ctx, s.postgres.MoveStreams, append(args, arrays(2, flat)...)...).Scan(&n)
		return n > 0, err
	}
	l := s.sqlite
	for _, m := range moved {
		version, sum := s.crypt.Print(sqlform.PrintOfStream, m.Name, m.Print)
		if _, err := tx.ExecContext(ctx, l.MoveStream, m.Last, version, sum, m.Scope, m.Name); err != nil {
			return false, err
		}
		if _, err := tx.ExecContext(ctx, l.FreeMarkers, m.Scope, m.Name, m.Last); err != nil {
			return false, err
		}
		done, err := tx.ExecContext(ctx, l.FreeRows, m.Scope, m.Name, m.Last)
		if err != nil {
			return false, err
		}
		if n, err := done.RowsAffected(); err != nil {
			return false, err
		} else if n > 0 {
			freed = true
		}
	}
	return freed, nil
}

// skipStream moves a stream over whatever is missing.
func (s *Store) skipStream(ctx context.Context, tx *sql.Tx, to *streams.Stream) error {
	if s.postgres == nil {
		_, err := s.moveStreams(ctx, tx, []*streams.Stream{to})
		return err
	}
	_, err := tx.ExecContext(ctx, s.postgres.SkipStream, to.Scope, to.Name, to.Last)
	return err
}

// Streams implements admin.Streams.
func (s *Store) Streams(ctx context.Context, f admin.StreamFilter) ([]admin.StoredStream, error) {
	if f.Limit <= 0 {
		f.Limit = mostRows
	}
	rows, err := s.db.QueryContext(ctx, s.sql.Streams, bytesOrNull(f.Consumer), bytesOrNull(f.Stream), f.Gaps, f.Limit)
	if err != nil {
		return nil, s.blameless("streams", err)
	}
	defer rows.Close()
	var all []admin.StoredStream
	for rows.Next() {
		var found admin.StoredStream
		var consumer, source, name []byte
		var oldest sql.NullInt64
		if err := rows.Scan(&consumer, &source, &found.Generation, &name, &found.Last, &found.Blocked, &found.First, &found.Row, &oldest); err != nil {
			return nil, s.blameless("streams", err)
		}
		found.Consumer, found.Source, found.Name = string(consumer), string(source), string(name)
		if oldest.Valid {
			found.Oldest = time.UnixMilli(oldest.Int64)
		}
		all = append(all, found)
	}
	if err := rows.Err(); err != nil {
		return nil, s.blameless("streams", err)
	}
	return all, nil
}

// bytesOrNull is a filter's value; an empty one chooses all.
func bytesOrNull(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

// SkipTo implements admin.Streams.
func (s *Store) SkipTo(ctx context.Context, of admin.StoredStream, to int64, a store.Act) error {
	s, err := s.ofActs(ctx, of.Consumer)
	if err != nil {
		return err
	}
	scope, err := s.Scope(ctx, of.Consumer, of.Source, of.Generation)
	if err != nil {
		return err
	}
	err = s.write(ctx, func(tx *sql.Tx) error {
		var last int64
		err := tx.QueryRowContext(ctx, s.sql.Stream, []byte(of.Consumer), []byte(of.Source), of.Generation, []byte(of.Name)).Scan(&last)
		if errors.Is(err, sql.ErrNoRows) || err == nil && (last != of.Last || to <= last) {
			return fmt.Errorf("stream %q: %w", of.Name, semel.ErrChanged)
		}
		if err != nil {
			return err
		}
		if err := s.skipStream(ctx, tx, &streams.Stream{Scope: scope, Name: []byte(of.Name), Last: to}); err != nil {
			return err
		}
		return s.record(ctx, tx, a, of.Row, "done")
	})
	return s.answer("skip", err)
}
