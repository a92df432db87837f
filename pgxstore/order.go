package pgxstore

import (
	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/internal/lines"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/internal/streams"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// lookAtLines returns the statement that finds the messages whose lane has waiting rows. The statement is sent with the
// statements that begin the batch.
func (b *batch) lookAtLines(marks []store.Mark) []*request {
	asked := lines.Asked(marks)
	if len(asked) == 0 {
		return nil
	}
	names := make([][]byte, 0, len(asked))
	for _, i := range asked {
		names = append(names, marks[i].Line)
	}
	return []*request{{sql: b.store.sql.BusyLines, args: []any{names}, read: func(rows pgx.Rows) error {
		for rows.Next() {
			var k int
			if err := rows.Scan(&k); err != nil {
				return err
			}
			b.busy = append(b.busy, asked[k-1])
		}
		return rows.Err()
	}}}
}

// enqueueStatements returns the statements that add rows to the queues of their lanes.
func enqueueStatements(p *sqlform.Postgres, marks []sqlform.Mark, all []lines.Entry) (texts []string, args [][]any) {
	if len(all) == 0 {
		return nil, nil
	}
	var rows, of, behind []int64
	var names, ids, lined [][]byte
	for _, n := range lines.Counted(all) {
		names, rows = append(names, []byte(n.Line)), append(rows, n.Rows)
	}
	for _, n := range all {
		of, ids = append(of, marks[n.Mark].Scope), append(ids, marks[n.Mark].Key)
		lined, behind = append(lined, []byte(n.Line)), append(behind, n.Behind)
	}
	return []string{p.KnowLines, p.EnterLines}, [][]any{{names, rows}, {of, ids, lined, behind}}
}

// changeLines returns the statements that add a batch's rows to the queues of their lanes, and that unblock the next
// rows of lanes from which other rows were removed.
func (b *batch) changeLines(all []lines.Entry, left []int64) (requests []*request) {
	texts, args := enqueueStatements(b.store.sql, b.marks, all)
	if len(left) > 0 {
		names := [][]byte{}
		for _, n := range lines.Counted(all) {
			names = append(names, []byte(n.Line))
		}
		requests = append(requests, &request{sql: b.store.sql.LeaveLines, args: []any{left, names}})
	}
	for i := range texts {
		q := &request{sql: texts[i], args: args[i]}
		if i == 1 {
			q.read = b.countFreed
		}
		requests = append(requests, q)
	}
	if len(left) > 0 {
		requests = append(requests, &request{sql: b.store.sql.AdvanceLines, args: []any{left}, read: b.countFreed})
	}
	return requests
}

// countFreed counts the rows that the commit unblocks.
func (b *batch) countFreed(rows pgx.Rows) error {
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return err
		}
		b.freed += n
	}
	return rows.Err()
}

// takeStreams returns the statements that lock the streams of a batch. The statements are sent with the statements that
// begin the batch, and take no round trip of their own.
func (b *batch) takeStreams(o store.TxOptions) []*request {
	all := b.streams.All()
	if len(all) == 0 {
		return nil
	}
	scopes, names, lasts := streamLists(all)
	take := &request{sql: b.store.sql.TakeStreams, args: []any{scopes, names, formatMilliseconds(o.EffectLock, defaultLock)}, read: b.readStreams}
	return []*request{{sql: b.store.sql.KnowStreams, args: []any{scopes, names, lasts, formatMilliseconds(o.MarkLock, defaultLock)}}, take}
}

// streamLists returns streams as three lists: scopes, names and last versions.
func streamLists(all []*streams.Stream) (scopes []int64, names [][]byte, lasts []int64) {
	for _, s := range all {
		scopes, names, lasts = append(scopes, s.Scope), append(names, s.Name), append(lasts, s.Last)
	}
	return scopes, names, lasts
}

// streamPrints returns the fingerprints of the streams' last messages as two lists: versions and sums.
func streamPrints(c sqlform.Crypt, all []*streams.Stream) (versions []int16, sums [][]byte) {
	for _, s := range all {
		version, sum := c.Print(sqlform.PrintOfStream, s.Name, s.Print)
		versions, sums = append(versions, int16(version)), append(sums, sum)
	}
	return versions, sums
}

// readStreams reads the last versions of the streams in a batch.
func (b *batch) readStreams(rows pgx.Rows) error {
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

// streamsTaken returns an error if a stream is missing although it was inserted just before.
func (b *batch) streamsTaken() error { return sqlstore.AllTaken(b.took, len(b.streams.All())) }

// beginStreams returns the statement that inserts streams that have no row yet.
func beginStreams(sql *sqlform.Postgres, begun []*streams.Stream) *request {
	scopes, names, lasts := streamLists(begun)
	return &request{sql: sql.BeginStreams, args: []any{scopes, names, lasts}}
}

// moveStreams returns the statement that advances streams with the commit.
func (b *batch) moveStreams(moved []*streams.Stream) *request {
	scopes, names, lasts := streamLists(moved)
	versions, sums := streamPrints(b.store.crypt(), moved)
	places, numbers := streams.Turns(moved)
	return &request{sql: b.store.sql.MoveStreams, args: []any{scopes, names, lasts, versions, sums, places, numbers}, read: b.countFreed}
}
