package sqlstore

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/semel-go/semel"
)

// stored is a mark in the form of its table.
type stored struct {
	mark     *semel.Mark
	id, long []byte
}

func storedMarks(marks []semel.Mark) []stored {
	all := make([]stored, len(marks))
	for i := range marks {
		id, long := storedID(marks[i].ID)
		all[i] = stored{&marks[i], id, long}
	}
	return all
}

// MarkIn implements semel.TxMarker. In SQLite a transaction that has read and
// not written when it marks may fail with an error of ClassContended: begin it
// with a write.
func (s *Store) MarkIn(ctx context.Context, tx *sql.Tx, marks []semel.Mark) ([]semel.Verdict, error) {
	verdicts, err := s.mark(ctx, tx, storedMarks(marks), "mark")
	if err != nil {
		return nil, s.blameless("mark", err)
	}
	return verdicts, nil
}

// mark writes the marks sorted by identity, so that two batches never wait for
// each other, and of equal ones the first; then it looks up what became of
// those that were there. These are two statements, because a copy that was in
// flight when the first began is visible to the second only.
//
// The first statement is the one of this name; more are its further arguments.
func (s *Store) mark(ctx context.Context, tx *sql.Tx, marks []stored, name string, more ...any) ([]semel.Verdict, error) {
	verdicts := make([]semel.Verdict, len(marks))
	var seen []int
	for chunk := range s.dialect.chunks(sorted(marks)) {
		text, args := s.bulk(name, 6, markColumns(marks, chunk))
		if err := s.insert(ctx, tx, text, append(args, more...), marks, chunk, verdicts); err != nil {
			return nil, err
		}
		for _, i := range chunk {
			if verdicts[i].Kind != semel.Fresh {
				seen = append(seen, i)
			}
		}
	}
	if len(seen) == 0 {
		return verdicts, nil
	}
	for chunk := range s.dialect.chunks(seen) {
		if err := s.judge(ctx, tx, marks, chunk, verdicts); err != nil {
			return nil, err
		}
	}
	for _, i := range seen {
		if verdicts[i].Kind == 0 {
			return nil, &storeError{"mark", semel.ClassContended, fmt.Errorf("a marker was removed while it was marked")}
		}
	}
	return verdicts, nil
}

func sorted(marks []stored) []int {
	order := make([]int, len(marks))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &marks[i], &marks[j]
		return cmp.Or(cmp.Compare(a.mark.Scope, b.mark.Scope), bytes.Compare(a.id, b.id), cmp.Compare(i, j))
	})
	return order
}

func markColumns(marks []stored, chunk []int) []any {
	flat := make([]any, 0, 6*len(chunk))
	for _, i := range chunk {
		m := marks[i].mark
		flat = append(flat, m.Scope, marks[i].id, int64(m.As), int64(m.Fingerprint.Version), sumOf(m.Fingerprint), marks[i].long)
	}
	return flat
}

// insert writes the marks of a chunk; those it wrote are fresh.
func (s *Store) insert(ctx context.Context, tx *sql.Tx, text string, args []any, marks []stored, chunk []int, verdicts []semel.Verdict) error {
	written, err := s.written(ctx, tx, text, args, len(chunk))
	if err != nil {
		return err
	}
	for _, i := range chunk {
		key := markerKey{marks[i].mark.Scope, string(marks[i].id)}
		if written[key] {
			delete(written, key)
			verdicts[i].Kind = semel.Fresh
		}
	}
	return nil
}

type markerKey struct {
	scope int64
	id    string
}

func (s *Store) written(ctx context.Context, tx *sql.Tx, text string, args []any, most int) (map[markerKey]bool, error) {
	rows, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	written := make(map[markerKey]bool, most)
	for rows.Next() {
		var n int64
		var id sql.RawBytes
		if err := rows.Scan(&n, &id); err != nil {
			return nil, err
		}
		written[markerKey{n, string(id)}] = true
	}
	return written, rows.Err()
}

// judge finds the verdicts on marks whose identity was marked before.
func (s *Store) judge(ctx context.Context, tx *sql.Tx, marks []stored, chunk []int, verdicts []semel.Verdict) error {
	args := make([]any, 0, 4*len(chunk))
	for _, i := range chunk {
		m := marks[i].mark
		args = append(args, int64(i), m.Scope, marks[i].id, conflictOf(m.Fingerprint))
	}
	text, args := s.bulk("judge", 4, args)
	rows, err := tx.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var i int
		var outcome, version uint8
		var sum sql.RawBytes
		var known bool
		if err := rows.Scan(&i, &outcome, &version, &sum, &known); err != nil {
			return err
		}
		verdicts[i] = verdict(marks[i].mark.Fingerprint, fingerprintOf(version, sum), semel.Outcome(outcome), known)
	}
	return rows.Err()
}

func verdict(asked, there semel.Fingerprint, o semel.Outcome, known bool) semel.Verdict {
	if asked.Conflicts(there) {
		return semel.Verdict{Kind: semel.Conflict, Known: known}
	}
	return semel.Verdict{Kind: semel.AlreadyApplied + semel.VerdictKind(o-semel.Applied)}
}

// sumOf is NULL where there is no fingerprint.
func sumOf(f semel.Fingerprint) []byte {
	if f.Version == 0 {
		return nil
	}
	return f.Sum[:]
}

func fingerprintOf(version uint8, sum []byte) semel.Fingerprint {
	f := semel.Fingerprint{Version: version}
	copy(f.Sum[:], sum)
	return f
}

// conflictOf is what a conflict's row carries in its key beside the identity.
func conflictOf(f semel.Fingerprint) []byte {
	return append([]byte{f.Version}, f.Sum[:]...)
}
