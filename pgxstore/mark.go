package pgxstore

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/semel-go/semel/internal/formers"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// marking writes markers with one statement. If some markers exist already, a second statement reads them. The first
// statement cannot read markers that exist already, because a statement does not see a marker that was committed after
// the statement began.
type marking struct {
	marks    []sqlform.Mark
	order    []int
	verdicts []store.Verdict
	former   *formers.Batch // nil if no mark has a previous identity
	crypt    sqlform.Crypt
	// dated is true if the markers are in a table with daily partitions.
	dated bool
	// settingsAltered is true if settings of the connection may prevent writes.
	settingsAltered bool
	// optimistic is true if the markers are inserted without a check of each marker. The field missed is true if some
	// of the markers were not inserted.
	optimistic, missed bool
}

func (s *Store) newMarking(marks []sqlform.Mark, former *formers.Batch) *marking {
	return &marking{marks: marks, former: former, crypt: s.crypt(), order: sqlform.Sorted(marks), verdicts: make([]store.Verdict, len(marks)), dated: s.days != nil}
}

// insertStatement returns the statement that writes the markers. The answer to the statement contains the markers that
// were written.
func (m *marking) insertStatement(text string) *request {
	n := len(m.order)
	scopes, ids, outcomes := make([]int64, n), make([][]byte, n), make([]int16, n)
	versions, sums, longs := make([]int16, n), make([][]byte, n), make([][]byte, n)
	for at, i := range m.order {
		mark := &m.marks[i]
		scopes[at], ids[at], longs[at] = mark.Scope, mark.Key, mark.Long
		version, sum := m.crypt.MarkPrint(mark)
		outcomes[at], versions[at], sums[at] = int16(mark.As), int16(version), sum
	}
	return &request{sql: text, args: []any{scopes, ids, outcomes, versions, sums, longs}, read: m.readWritten}
}

type markerKey struct {
	scope int64
	id    string
}

// readWritten reads which markers were written. If several markers are equal, only the first of them was written.
// Usually all markers were written, so that the keys need not be compared.
func (m *marking) readWritten(rows pgx.Rows) error {
	var scopes []int64
	var ends []int
	var ids []byte // all ids, one after the other; the slice ends has the end of each id
	for rows.Next() {
		scope, id, err := markerOf(rows)
		if err != nil {
			return err
		}
		ids = append(ids, id...)
		scopes, ends = append(scopes, scope), append(ends, len(ids))
	}
	if len(ends) == len(m.order) {
		for _, i := range m.order {
			m.verdicts[i].Kind = store.Fresh
		}
		return rows.Err()
	}
	wrote := make(map[markerKey]bool, len(ends))
	first := 0
	for n, end := range ends {
		wrote[markerKey{scopes[n], string(ids[first:end])}] = true
		first = end
	}
	for _, i := range m.order {
		key := markerKey{m.marks[i].Scope, string(m.marks[i].Key)}
		if wrote[key] {
			delete(wrote, key)
			m.verdicts[i].Kind = store.Fresh
		}
	}
	return rows.Err()
}

// markerOf reads the key of a marker. The result id is valid until the next row.
func markerOf(rows pgx.Rows) (scope int64, id []byte, err error) {
	if columns := rows.FieldDescriptions(); columns[0].Format == pgx.BinaryFormatCode && columns[1].Format == pgx.BinaryFormatCode {
		if raw := rows.RawValues(); len(raw[0]) == 8 {
			return int64(binary.BigEndian.Uint64(raw[0])), raw[1], nil
		}
	}
	var bytes pgtype.DriverBytes
	err = rows.Scan(&scope, &bytes)
	return scope, bytes, err
}

// existingMarks returns the indexes of the markers that were not written because they existed already.
func (m *marking) existingMarks() []int {
	var seen []int
	for i := range m.verdicts {
		if m.verdicts[i].Kind == 0 && !m.isClaimed(i) {
			seen = append(seen, i)
		}
	}
	return seen
}

// writtenFlags reports for each marker whether it was written. For a claimed row the result is false.
func (m *marking) writtenFlags() []bool {
	fresh := make([]bool, len(m.verdicts))
	for i, v := range m.verdicts {
		fresh[i] = v.Kind == store.Fresh && !m.isClaimed(i)
	}
	return fresh
}

// isClaimed reports whether the marker with the index i belongs to a claimed row.
func (m *marking) isClaimed(i int) bool { return m.marks[i].Claim.Token != 0 }

// claimsToCheck returns the claims, with the indexes of their markers. claimsToCheck sets the verdict of each claim to
// store.ClaimLost; later, readClaims corrects the verdicts of the valid claims.
func (m *marking) claimsToCheck() (claims []store.Claim, at []int) {
	for i := range m.marks {
		if m.isClaimed(i) {
			claims, at = append(claims, m.marks[i].Claim), append(at, i)
			m.verdicts[i].Kind = store.ClaimLost
		}
	}
	return claims, at
}

// readClaims returns a function that reads which claims are valid.
func (m *marking) readClaims(at []int) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		for rows.Next() {
			var k *int64
			var done bool
			if err := rows.Scan(&k, &done); err != nil {
				return err
			}
			if k == nil {
				m.settingsAltered = true
				continue
			}
			m.verdicts[at[*k]] = sqlform.Standing(done)
		}
		return rows.Err()
	}
}

// existingStatement returns the statement that reads the markers that existed already.
func (m *marking) existingStatement(text string) *request {
	seen := append(m.existingMarks(), m.former.Rows(m.verdicts)...)
	numbers, scopes, ids, conflicts := make([]int64, 0, len(seen)), make([]int64, 0, len(seen)), make([][]byte, 0, len(seen)), make([][]byte, 0, len(seen))
	for _, i := range seen {
		mark := &m.marks[i]
		conflicts = m.crypt.AppendConflicts(conflicts, mark)
		for len(numbers) < len(conflicts) { // once for each format that the key of a conflict may have
			numbers, scopes, ids = append(numbers, int64(i)), append(scopes, mark.Scope), append(ids, mark.Key)
		}
	}
	return &request{sql: text, args: []any{numbers, scopes, ids, conflicts}, read: m.readExisting}
}

func (m *marking) readExisting(rows pgx.Rows) error {
	for rows.Next() {
		var i int64
		var there sqlform.Marker
		if err := rows.Scan(&i, &there.Outcome, &there.Version, &there.Sum, &there.Known); err != nil {
			return err
		}
		if m.verdicts[i].Kind == store.Fresh { // the statement that reads existing markers was needed only for the row of this marker
			m.former.Knows(int(i), there.Known)
			continue
		}
		there.Known = there.Known || m.verdicts[i].Known
		if !m.dated {
			m.verdicts[i] = there.Verdict(m.crypt, &m.marks[i])
			continue
		}
		var err error
		if m.verdicts[i], err = sqlstore.Judged(m.crypt, &m.marks[i], there); err != nil {
			return err
		}
	}
	return rows.Err()
}

// fault returns an error if a marker was neither written nor existed before.
func (m *marking) fault() error {
	if len(m.existingMarks()) > 0 {
		return &storeError{"mark", store.ClassContended, sqlform.ErrMissing}
	}
	return nil
}

// trimStatement returns the statement that removes markers from the transaction that wrote them.
func trimStatement(text string, marks []sqlform.Mark, back []int) *request {
	scopes, ids := make([]int64, len(back)), make([][]byte, len(back))
	for at, i := range back {
		scopes[at], ids[at] = marks[i].Scope, marks[i].Key
	}
	return &request{sql: text, args: []any{scopes, ids}}
}

// Dated returns a store for one consumer whose markers are in a table of their own, with a partition for each day. See
// sqlstore.Store.Dated, also for the errors. The method Queued of the returned store also uses that table.
func (s *Store) Dated(ctx context.Context, o sqlstore.Dated) (*Store, error) {
	inner, err := s.inner.Dated(ctx, o)
	if err != nil {
		return nil, err
	}
	days := sqlstore.DatedStatements(inner, sqlform.Revision12{})
	return &Store{tables: tables{inner, inner, s.exchange}, pool: s.pool, begin: s.begin, sql: sqlstore.Statements(inner, sqlform.Revision12{}), days: days}, nil
}

// outsidePartitions returns the indexes of markers whose ids belong to no daily partition, and which only record an
// outcome because their messages are not applied.
func (m *marking) outsidePartitions() (outside []int) {
	for i := range m.marks {
		if m.dated && m.verdicts[i].Kind == store.Old && !m.marks[i].Asks() && !m.isClaimed(i) {
			outside = append(outside, i)
		}
	}
	return outside
}

// setAside returns the statement that writes markers in the table for ids that belong to no daily partition.
func (m *marking) setAside(text string, outside []int) *request {
	part := &marking{marks: m.marks, order: outside, verdicts: make([]store.Verdict, len(m.marks))}
	r := part.insertStatement(text)
	r.read = func(rows pgx.Rows) error {
		if err := part.readWritten(rows); err != nil {
			return err
		}
		for _, i := range outside {
			if m.verdicts[i] = part.verdicts[i]; m.verdicts[i].Kind == store.Fresh {
				m.marks[i].SetAside()
			}
		}
		return nil
	}
	return r
}

// setAside writes the markers whose ids belong to no daily partition. If another transaction wrote the marker of a
// message first, setAside sets the verdict of the message.
func (s *Store) setAside(m *marking, ask func(*request) error) error {
	outside := m.outsidePartitions()
	if len(outside) == 0 {
		return nil
	}
	err := ask(m.setAside(s.days.Aside, outside))
	if err == nil && len(m.existingMarks()) > 0 {
		err = ask(m.existingStatement(s.sql.Judge))
	}
	return err
}

// LookUpMarkers implements store.Leases.
func (s *Store) LookUpMarkers(ctx context.Context, marks []store.Mark) ([]store.Verdict, error) {
	m := s.newMarking(sqlform.Marks(marks), nil)
	r := m.existingStatement(s.sql.Judge)
	rows, err := s.pool.Query(ctx, r.sql, r.args...)
	if err == nil {
		err = r.read(rows)
		rows.Close()
	}
	if err == nil {
		err = rows.Err()
	}
	if err != nil {
		return nil, s.wrapStoreError("look", err)
	}
	for i := range m.verdicts {
		if m.verdicts[i].Kind == 0 {
			m.verdicts[i].Kind = store.Fresh
		}
	}
	return m.verdicts, nil
}

// LookUpMarkers implements store.Leases.
func (s *QueuedStore) LookUpMarkers(ctx context.Context, marks []store.Mark) ([]store.Verdict, error) {
	return s.direct.LookUpMarkers(ctx, marks)
}

// askAges returns a statement that reads the times up to which markers were removed, and stores them in the parameter
// lows. The result is nil if no marker needs one of these times. The statement must run after the statement that writes
// the markers, because writing may have waited for the commit of a process that removed markers, and a statement that
// began earlier would not see this commit.
func (s *Store) askAges(marks []store.Mark, lows map[int64]sqlform.Low) *request {
	scopes := sqlform.Aged(marks)
	if len(scopes) == 0 {
		return nil
	}
	return &request{sql: s.sql.Low, args: []any{scopes}, read: func(rows pgx.Rows) error {
		for rows.Next() {
			var scope, before, now int64
			if err := rows.Scan(&scope, &before, &now); err != nil {
				return err
			}
			lows[scope] = sqlform.Low{Before: time.UnixMicro(before), Now: time.UnixMicro(now)}
		}
		return rows.Err()
	}}
}
