package sqlstore

import (
	"context"
	"database/sql"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/sqlform"
)

// Look implements contract.Looker.
func (s *Store) Look(ctx context.Context, marks []contract.Mark) ([]contract.Verdict, error) {
	if err := s.file.check(); err != nil {
		return nil, err
	}
	all := sqlform.Marks(marks)
	verdicts, order := make([]contract.Verdict, len(all)), make([]int, len(all))
	for i := range all {
		order[i], verdicts[i].Kind = i, contract.Fresh
	}
	for chunk := range s.dialect.chunks(order) {
		text, args := s.bulk(s.sql.Judge, 4, judged(all, chunk))
		rows, err := s.db.QueryContext(ctx, text, args...)
		if err == nil {
			err = s.verdicts(rows, all, verdicts)
		}
		if err != nil {
			return nil, s.blameless("look", err)
		}
	}
	return verdicts, nil
}

// verdicts reads the verdicts on marks whose identity was marked before.
func (s *Store) verdicts(rows *sql.Rows, marks []sqlform.Mark, verdicts []contract.Verdict) error {
	defer rows.Close()
	for rows.Next() {
		i, there, err := scanJudged(rows)
		if err != nil {
			return err
		}
		if verdicts[i], err = s.verdict(&marks[i], there); err != nil {
			return err
		}
	}
	return rows.Err()
}
