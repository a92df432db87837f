package pgxstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// takeStreams are the statements that take the streams of a batch, with those that
// begin it: no round trip of their own.
func (b *batch) takeStreams(o store.TxOptions) []*request {
	all := b.streams.All()
	if len(all) == 0 {
		return nil
	}
	scopes, names, lasts := streamLists(all)
	take := &request{sql: b.store.sql.TakeStreams, args: []any{scopes, names, milliseconds(o.EffectLock, defaultLock)}, read: b.taken}
	return []*request{{sql: b.store.sql.KnowStreams, args: []any{scopes, names, lasts, milliseconds(o.MarkLock, defaultLock)}}, take}
}

// streamLists are streams as lists.
func streamLists(all []*streams.Stream) (scopes []int64, names [][]byte, lasts []int64) {
	for _, s := range all {
		scopes, names, lasts = append(scopes, s.Scope), append(names, s.Name), append(lasts, s.Last)
	}
	return scopes, names, lasts
}

// streamPrints are the fingerprints of the streams' last contents as lists.
func streamPrints(c sqlform.Crypt, all []*streams.Stream) (versions []int16, sums [][]byte) {
	for _, s := range all {
		version, sum := c.Print(sqlform.PrintOfStream, s.Name, s.Print)
		versions, sums = append(versions, int16(version)), append(sums, sum)
	}
	return versions, sums
}

// taken reads where the streams of a batch are.
func (b *batch) taken(rows pgx.Rows) error {
	all := b.streams.All()
	for rows.Next() {
		var k, last int64
		var version int16
		var sum []byte
		if err := rows.Scan(&k, &last, &version, &sum); err != nil {
			return err
		}
		all[k-1].Last, all[k-1].Print = last, b.store.crypt().ReadPrint(sqlform.PrintOfStream, all[k-1].Name, int64(version), sum)
		b.took++
	}
	return rows.Err()
}

// streamsTaken is an error if a stream was not there after it was written.
func (b *batch) streamsTaken() error { return sqlstore.AllTaken(b.took, len(b.streams.All())) }

// beginStreams is the statement that writes where streams begin that have not begun.
func beginStreams(sql *sqlform.Postgres, begun []*streams.Stream) *request {
	scopes, names, lasts := streamLists(begun)
	return &request{sql: sql.BeginStreams, args: []any{scopes, names, lasts}}
}

// moveStreams is the statement that moves streams with the commit.
func (b *batch) moveStreams(moved []*streams.Stream) *request {
	scopes, names, lasts := streamLists(moved)
	versions, sums := streamPrints(b.store.crypt(), moved)
	places, numbers := streams.Turns(moved)
	return &request{sql: b.store.sql.MoveStreams, args: []any{scopes, names, lasts, versions, sums, places, numbers}, read: b.countFreed}
}

// Streams implements admin.Streams: the streams and what waits for their versions. A
// limit of 0 means 1,000.
func (t *tables) Streams(ctx context.Context, f admin.StreamFilter) ([]admin.StoredStream, error) {
	return t.inner.Streams(ctx, f)
}

// SkipTo implements admin.Streams: it moves a stream to a later version, and frees
// what waited for it.
func (t *tables) SkipTo(ctx context.Context, s admin.StoredStream, to int64, a store.Act) error {
	return t.inner.SkipTo(ctx, s, to, a)
}
