package sqlstore

import (
	"context"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// LookUpMarkers implements store.Leases.
func (s *Store) LookUpMarkers(ctx context.Context, marks []store.Mark) ([]store.Verdict, error) {
	if err := s.file.check(); err != nil {
		return nil, err
	}
	all := sqlform.Marks(marks)
	verdicts, order := make([]store.Verdict, len(all)), make([]int, len(all))
	for i := range all {
		order[i], verdicts[i].Kind = i, store.Fresh
	}
	for chunk := range s.dialect.chunks(order) {
		if err := s.seen(ctx, all, chunk, verdicts); err != nil {
			return nil, s.blameless("look", err)
		}
	}
	return verdicts, nil
}

// seen finds the verdicts on those marks of a chunk whose identity is marked, outside of any
// transaction.
func (s *Store) seen(ctx context.Context, marks []sqlform.Mark, chunk []int, verdicts []store.Verdict) error {
	if len(chunk) == 0 {
		return nil
	}
	text, args := s.bulk(s.sql.Judge, 4, judged(s.crypt, marks, chunk))
	rows, err := s.db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		i, there, err := scanJudged(rows)
		if err == nil {
			there.Known = there.Known || verdicts[i].Known
			verdicts[i], err = s.verdict(&marks[i], there)
		}
		if err != nil {
			return err
		}
	}
	return rows.Err()
}
