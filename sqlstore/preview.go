package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

var _ admin.Previewer = (*Store)(nil)

// Preview implements admin.Previewer. semel.ErrUnsupported: the consumer marks in a table
// of the user's, too.
func (s *Store) Preview(ctx context.Context, consumer string, generation int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	if (s.beside != nothing{}) && s.days == nil {
		return nil, fmt.Errorf("sqlstore: what a table of the user's has is found by marking alone: %w", semel.ErrUnsupported)
	}
	s, err := s.ofConsumer(ctx, consumer)
	if err == nil {
		err = s.file.check()
	}
	if err != nil {
		return nil, err
	}
	verdicts, err := s.foretell(ctx, consumer, generation, all)
	if err != nil {
		return nil, s.blameless("foretell", err)
	}
	return verdicts, nil
}

func (s *Store) foretell(ctx context.Context, consumer string, generation int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	verdicts := make([]store.Verdict, len(all))
	plain := make([]store.Mark, len(all))
	numbers := map[string]int64{}
	var known []int
	for i := range all {
		verdicts[i].Kind, plain[i] = store.Fresh, all[i].Mark
		number, asked := numbers[all[i].Source]
		if !asked {
			err := s.db.QueryRowContext(ctx, s.sql.Scope, scope{consumer, all[i].Source, generation}.args()...).Scan(&number)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return nil, err
			}
			numbers[all[i].Source] = number // 0: nothing of it is marked yet
		}
		if plain[i].Scope = number; number > 0 {
			known = append(known, i)
		}
	}
	marks := sqlform.Marks(plain)
	for chunk := range s.dialect.chunks(known) {
		if err := s.seen(ctx, marks, chunk, verdicts); err != nil {
			return nil, err
		}
	}
	return verdicts, nil
}
