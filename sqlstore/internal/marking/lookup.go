package marking

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/store"
)

// LookUpMarkers implements store.Leases.
func (s *Store) LookUpMarkers(ctx context.Context, marks []store.Mark) ([]store.Verdict, error) {
	if err := s.db.File.Check(); err != nil {
		return nil, err
	}
	all := sqlform.Marks(marks)
	verdicts, order := make([]store.Verdict, len(all)), make([]int, len(all))
	for i := range all {
		order[i], verdicts[i].Kind = i, store.Fresh
	}
	for chunk := range s.db.Dialect.Chunks(order) {
		if err := lookUpMarkers(ctx, s.db, all, chunk, verdicts); err != nil {
			return nil, s.db.Blameless("look", err)
		}
	}
	return verdicts, nil
}

// lookUpMarkers looks up markers outside of a transaction, and sets the verdicts of the messages that have a
// marker.
func lookUpMarkers(ctx context.Context, s *database.DB, marks []sqlform.Mark, chunk []int, verdicts []store.Verdict) error {
	if len(chunk) == 0 {
		return nil
	}
	text, args := s.Bulk(s.SQL.Judge, 4, judgeArgs(s.Crypt, marks, chunk))
	return database.EachRow(ctx, s.Pool, text, func(rows *sql.Rows) error {
		i, there, err := scanJudged(rows)
		if err == nil {
			there.Known = there.Known || verdicts[i].Known
			verdicts[i], err = verdict(s, &marks[i], there)
		}
		return err
	}, args...)
}

// Marker implements admin.MarkerReader.
func (s *Store) Marker(ctx context.Context, key semel.Key) (admin.StoredMarker, bool, error) {
	db, err := daily.OfConsumer(ctx, s.db, key.Consumer)
	if err != nil {
		return admin.StoredMarker{}, false, err
	}
	id, _ := sqlform.ID([]byte(key.ID))
	var m admin.StoredMarker
	var outcome, at, version int64
	var sum []byte
	err = db.Pool.QueryRowContext(ctx, db.SQL.Marker, []byte(key.Consumer), []byte(key.Source), id).Scan(&outcome, &at, &version, &sum)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return admin.StoredMarker{}, false, nil
	case err != nil:
		return admin.StoredMarker{}, false, db.Blameless("marker", err)
	}
	if m.Outcome = store.Outcome(outcome); !m.Outcome.Known() {
		return admin.StoredMarker{}, false, db.Blameless("marker", sqlform.NewerError(outcome, db.SQL.Markers))
	}
	m.At, m.Fingerprint = time.UnixMilli(at), db.Crypt.ReadPrint(sqlform.PrintOfID, id, version, sum)
	return m, true, nil
}

// Preview implements admin.Previewer. Preview returns semel.ErrUnsupported if the consumer also writes its markers to a
// user's own table.
func (s *Store) Preview(ctx context.Context, consumer string, generation int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	if !s.db.MarksAlone() {
		return nil, fmt.Errorf("sqlstore: the rows of an adopted table are found only by marking: %w", semel.ErrUnsupported)
	}
	db, err := daily.OfConsumer(ctx, s.db, consumer)
	if err == nil {
		err = db.File.Check()
	}
	if err != nil {
		return nil, err
	}
	verdicts, err := preview(ctx, db, consumer, generation, all)
	if err != nil {
		return nil, db.Blameless("preview", err)
	}
	return verdicts, nil
}

func preview(ctx context.Context, s *database.DB, consumer string, generation int64, all []admin.PreviewQuery) ([]store.Verdict, error) {
	verdicts := make([]store.Verdict, len(all))
	plain := make([]store.Mark, len(all))
	numbers := map[string]int64{}
	var known []int
	for i := range all {
		verdicts[i].Kind, plain[i] = store.Fresh, all[i].Mark
		number, asked := numbers[all[i].Source]
		if !asked {
			err := s.Pool.QueryRowContext(ctx, s.SQL.Scope, database.Scope{Consumer: consumer, Source: all[i].Source, Generation: generation}.Args()...).Scan(&number)
			if err != nil && !errors.Is(err, sql.ErrNoRows) {
				return nil, err
			}
			numbers[all[i].Source] = number // 0 means that the source has no markers yet
		}
		if plain[i].Scope = number; number > 0 {
			known = append(known, i)
		}
	}
	marks := sqlform.Marks(plain)
	for chunk := range s.Dialect.Chunks(known) {
		if err := lookUpMarkers(ctx, s, marks, chunk, verdicts); err != nil {
			return nil, err
		}
	}
	return verdicts, nil
}
