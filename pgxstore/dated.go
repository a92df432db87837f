package pgxstore

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// Dated returns a store for one consumer whose markers lie in a table of their own, of a
// partition for each day; see sqlstore.Store.Dated, whose errors these are. Its Queued does
// so, too.
func (s *Store) Dated(ctx context.Context, o sqlstore.Dated) (*Store, error) {
	inner, err := s.inner.Dated(ctx, o)
	if err != nil {
		return nil, err
	}
	days := sqlstore.DatedStatements(inner, sqlform.Revision12{})
	return &Store{tables: tables{inner, s.exchange}, pool: s.pool, begin: s.begin, sql: sqlstore.Statements(inner, sqlform.Revision12{}), days: days}, nil
}

// outside are the marks of ids outside of the days that are kept which only say what became
// of their messages.
func (m *marking) outside() (outside []int) {
	for i := range m.marks {
		if m.days && m.verdicts[i].Kind == store.Old && !m.marks[i].Asks() && !m.claims(i) {
			outside = append(outside, i)
		}
	}
	return outside
}

// setAside is the statement that writes such marks under keys of their own.
func (m *marking) setAside(text string, outside []int) *request {
	part := &marking{marks: m.marks, order: outside, verdicts: make([]store.Verdict, len(m.marks))}
	r := part.write(text)
	r.read = func(rows pgx.Rows) error {
		if err := part.written(rows); err != nil {
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

// setAside writes such marks, if there are any, and looks again at those that another was
// faster with.
func (s *Store) setAside(m *marking, ask func(*request) error) error {
	outside := m.outside()
	if len(outside) == 0 {
		return nil
	}
	err := ask(m.setAside(s.days.Aside, outside))
	if err == nil && len(m.seen()) > 0 {
		err = ask(m.judge(s.sql.Judge))
	}
	return err
}
