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
		text, args := s.bulk(s.sql.Judge, 4, judgeColumns(all, chunk))
		rows, err := s.db.QueryContext(ctx, text, args...)
		if err == nil {
			err = s.judged(rows, all, verdicts)
		}
		if err != nil {
			return nil, s.blameless("look", err)
		}
	}
	return verdicts, nil
}

// judged reads the verdicts on marks whose identity was marked before.
func (s *Store) judged(rows *sql.Rows, marks []sqlform.Mark, verdicts []contract.Verdict) error {
	defer rows.Close()
	for rows.Next() {
		i, there, err := markerThere(rows)
		if err != nil {
			return err
		}
		if verdicts[i], err = s.verdict(&marks[i], there); err != nil {
			return err
		}
	}
	return rows.Err()
}

// verdict is the answer to a mark whose identity is marked.
func (s *Store) verdict(m *sqlform.Mark, there sqlform.Marker) (contract.Verdict, error) {
	if s.days != nil {
		return Judged(m, there)
	}
	return there.Verdict(m.Mark), nil
}

// judgeColumns are the arguments of a statement that says what became of these marks.
func judgeColumns(marks []sqlform.Mark, chunk []int) []any {
	args := make([]any, 0, 4*len(chunk))
	for _, i := range chunk {
		args = append(args, int64(i), marks[i].Scope, marks[i].Key, sqlform.Conflict(marks[i].Fingerprint))
	}
	return args
}

// markerThere reads the number of a mark and the marker that was there before it. Its sum
// is valid until the next row.
func markerThere(rows *sql.Rows) (i int, there sqlform.Marker, err error) {
	var sum sql.RawBytes
	err = rows.Scan(&i, &there.Outcome, &there.Version, &sum, &there.Known)
	there.Sum = sum
	return i, there, err
}
