package memstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// writeRow writes an inbox row at the commit. The caller has locked the store.
func (b *batch) writeRow(r *store.Row) {
	s, m := b.store, b.marks[r.Mark]
	key := rowKey{identity: identity{m.Scope, string(m.ID)}, conflict: r.Conflict}
	if r.Conflict {
		key.fingerprint = m.Fingerprint
	}
	old := s.rowOf[key]
	switch {
	case old != nil && (r.Repeat || r.Conflict):
		old.Repeated++
		s.touchWaiting(old)
		return
	case r.Repeat:
		return
	}
	s.fill(s.rowFor(key), m, r)
	if !r.Conflict {
		s.setOutcome(key.identity, r.State.Outcome())
	}
}

// place returns the index of the row with the given number or, if there is no such row, the index where the row would
// be inserted.
func (s *Store) place(number int64) int {
	i, _ := slices.BinarySearchFunc(s.rows, number, func(r *row, n int64) int { return cmp.Compare(r.Number, n) })
	return i
}

// rowByNumber returns the row with the given number, or nil if there is no such row.
func (s *Store) rowByNumber(number int64) *row {
	if i := s.place(number); i < len(s.rows) && s.rows[i].Number == number {
		return s.rows[i]
	}
	return nil
}

// rowFor returns the row with the given key. If the row does not exist, rowFor creates it.
func (s *Store) rowFor(key rowKey) *row {
	r := s.rowOf[key]
	if r == nil {
		r = &row{key: key}
		s.numbers++
		r.Number = s.numbers
		s.rows = append(s.rows, r)
		s.rowOf[key] = r
	}
	return r
}

func (s *Store) fill(to *row, m store.Mark, r *store.Row) {
	sc := s.scopeOf[m.Scope-1]
	to.Key = semel.Key{Consumer: sc.consumer, Source: sc.source, ID: string(m.ID)}
	to.Fingerprint, to.Conflict, to.Surrogate = m.Fingerprint, r.Conflict, r.Surrogate
	to.State, to.Reason, to.Attempts = r.State, r.Reason, r.Attempts
	to.FirstError, to.LastError = cut(r.FirstError), cut(r.LastError)
	to.Stream, to.Version = string(m.Version.Stream), m.Version.Number
	to.Line, to.Place, to.Steps = "", 0, nil
	to.cause, to.again = string(m.Cause), false
	to.Message = clone(r.Message)
	to.Size = len(to.Message.Body)
	s.touch(to)
	to.ReceivedAt = to.ChangedAt
	if r.State.Outcome() == store.Waiting {
		to.DueAt = to.ChangedAt.Add(r.After)
	}
}

// touch changes the revision of the row, because the row is written.
func (s *Store) touch(r *row) {
	r.Revision++
	r.ChangedAt = s.now()
}

func (s *Store) setOutcome(id identity, o store.Outcome) {
	if m, ok := s.markers[id]; ok {
		m.outcome = o
		s.markers[id] = m
	}
}

func clone(m *semel.Message) *semel.Message {
	if m == nil {
		return &semel.Message{}
	}
	c := *m
	c.Key, c.Body = bytes.Clone(m.Key), bytes.Clone(m.Body)
	c.Headers = slices.Clone(m.Headers)
	for i := range c.Headers {
		c.Headers[i].Value = bytes.Clone(c.Headers[i].Value)
	}
	return &c
}

// cut truncates an error message to the largest allowed length, at the end of a character.
func cut(text string) string {
	if len(text) <= store.MaxErrorText {
		return text
	}
	return strings.ToValidUTF8(text[:store.MaxErrorText], "")
}

// Pending implements store.Inbox.
func (s *Store) Pending(_ context.Context, consumer string) (store.Pending, error) {
	if err := s.lock("rows"); err != nil {
		return store.Pending{}, err
	}
	defer s.mu.Unlock()
	var p store.Pending
	now := s.now()
	for _, r := range s.rows {
		if r.Key.Consumer != consumer || r.State.Outcome() != store.Waiting {
			continue
		}
		p.Oldest = max(p.Oldest, now.Sub(r.ReceivedAt))
		switch wait := r.claimableAt().Sub(now); {
		case r.waitsInLine():
			p.Blocked++
		case wait <= 0:
			p.Due++
		case r.State == store.StateInProgress:
			p.InProgress++
		case r.State == store.StateBlocked:
			p.Blocked++
		default:
			if p.Later++; p.Later == 1 || wait < p.Next {
				p.Next = wait
			}
		}
	}
	return p, nil
}

// Rows implements store.Inbox.
func (s *Store) Rows(ctx context.Context, f store.RowFilter) ([]store.StoredRow, error) {
	if err := s.ask("rows"); err != nil {
		return nil, err
	}
	if f.Limit <= 0 {
		f.Limit = 1000
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Stream != nil {
		return s.rowsOfStream(&f), nil
	}
	var found []store.StoredRow
	now := s.now()
	for _, r := range s.rows[s.place(f.After+1):] {
		if len(found) == f.Limit {
			break
		}
		if isSelected(&f, &r.StoredRow, now) {
			found = append(found, shownRow(r, f.Bodies))
		}
	}
	return found, nil
}

// rowsOfStream returns the rows of a stream, ordered by version and then by number.
func (s *Store) rowsOfStream(f *store.RowFilter) (found []store.StoredRow) {
	of := f.Stream
	for _, r := range s.rows {
		after := r.Version > of.From || r.Version == of.From && r.Number > f.After
		if r.Stream == of.Name && r.Key.Source == of.Source && after && (of.To == 0 || r.Version <= of.To) && isSelected(f, &r.StoredRow, s.now()) {
			found = append(found, shownRow(r, f.Bodies))
		}
	}
	slices.SortStableFunc(found, func(x, y store.StoredRow) int { return cmp.Compare(x.Version, y.Version) })
	return found[:min(len(found), f.Limit)]
}

func shownRow(r *row, body bool) store.StoredRow {
	copied := r.StoredRow
	copied.Message, copied.Steps = clone(r.Message), steps(r.Steps)
	if _, err := sqlform.State(string(r.State), rowsName); err != nil {
		copied.LastError = fmt.Sprintf("the row can be read only in part: %v; %s", err, r.LastError)
	}
	if !body {
		copied.Message.Body = nil
	}
	return copied
}

func isSelected(f *store.RowFilter, r *store.StoredRow, now time.Time) bool {
	switch {
	case f.Consumer != "" && f.Consumer != r.Key.Consumer,
		len(f.IDs) > 0 && !slices.Contains(f.IDs, r.Key.ID),
		f.Reason != "" && f.Reason != r.Reason,
		f.Type != "" && f.Type != r.Message.Type(),
		len(f.Numbers) > 0 && !slices.Contains(f.Numbers, r.Number),
		len(f.States) > 0 && !slices.Contains(f.States, r.State),
		f.DueLater && r.State == store.StateReceived && !r.DueAt.After(now),
		!f.ReceivedBefore.IsZero() && !r.ReceivedAt.Before(f.ReceivedBefore):
		return false
	}
	return true
}
