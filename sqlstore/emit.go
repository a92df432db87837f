package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/store"
)

var _ admin.Emitter = (*Store)(nil)

// caused is a row that a message caused.
type caused struct {
	calls.Sent
	number, revision int64
}

// Emit implements admin.Emitter.
func (s *Store) Emit(ctx context.Context, o admin.EmitOptions) (all admin.Emitted, err error) {
	if s.days != nil { // which has the markers of the consumer that caused, and not of senders
		s = s.days.store
	}
	if len(o.Causes) == 0 {
		return all, s.indexed(ctx, (*Store).ofCauses)
	}
	rows, err := s.causedBy(ctx, o.Causes)
	for i := 0; err == nil && i < len(rows); i++ {
		one := calls.EmitAgain(&o, &rows[i].Sent)
		if one.Again > 0 {
			one, err = s.emit(ctx, &rows[i])
		}
		all = all.Plus(one)
	}
	return all, s.answer("emit", err)
}

// causedBy are the rows of what these causes stand for, by number.
func (s *Store) causedBy(ctx context.Context, causes [][]byte) (rows []caused, err error) {
	each := make([]int, len(causes))
	for i := range each {
		each[i] = i
	}
	for chunk := range s.dialect.chunks(each) {
		if len(chunk) == 0 {
			continue
		}
		flat := make([]any, len(chunk))
		for n, i := range chunk {
			flat[n] = causes[i]
		}
		if rows, err = s.appendCaused(ctx, rows, flat); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func (s *Store) appendCaused(ctx context.Context, all []caused, causes []any) ([]caused, error) {
	text, args := s.bulk(s.sql.Caused, 1, causes)
	rows, err := s.db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c caused
		var sender []byte
		var since, ended int64
		if err := rows.Scan(&c.number, &c.revision, &sender, &c.State, &c.Started, &c.Finished, &since, &ended, &c.BodyRemoved); err != nil {
			return nil, err
		}
		c.Sender, c.Since, c.Ended = string(sender), calls.Ago(time.Duration(since)*time.Millisecond), time.Duration(ended)*time.Millisecond
		all = append(all, c)
	}
	return all, rows.Err()
}

// emit has one row sent again that nobody has changed since it was read, and whose marker
// says applied.
func (s *Store) emit(ctx context.Context, c *caused) (admin.Emitted, error) {
	s, err := s.ofRow(ctx, c.number)
	if err != nil {
		return admin.Emitted{}, err
	}
	left := false
	err = s.write(ctx, func(tx *sql.Tx) error {
		r, err := s.look(ctx, tx, c.number, c.revision)
		if err != nil {
			return err
		}
		if left = r.state != store.StateCompleted || r.outcome != store.Applied || len(r.conflict) > 0; left {
			return nil
		}
		if err := s.set(ctx, tx, r, s.sql.EmitRow); err != nil {
			return err
		}
		done, err := tx.ExecContext(ctx, s.sql.MarkersWait, actedRows(r))
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n != 1 {
			return errors.Join(fmt.Errorf("row %d is to be sent again, and its marker was not written: a trigger or a rule keeps that out; look for it with Check", c.number), err)
		}
		return nil
	})
	switch {
	case errors.Is(err, semel.ErrChanged), errors.Is(err, semel.ErrState), err == nil && left:
		return admin.Emitted{Left: 1}, nil // another has sent it again, or a person has acted on it
	case err != nil:
		return admin.Emitted{}, err
	}
	return admin.Emitted{Again: 1}, nil
}
