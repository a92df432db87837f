package memstore

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/sqlform"
)

// find returns the row if it has this revision, once no retry of its identity
// is under way; the store's lock is held.
func (s *Store) find(ctx context.Context, number, revision int64) (*row, error) {
	for {
		if number < 1 || number > int64(len(s.rows)) || s.rows[number-1].Revision != revision {
			return nil, fmt.Errorf("row %d: %w", number, semel.ErrChanged)
		}
		r := s.rows[number-1]
		other := s.held[r.key.identity]
		if m := s.markers[r.key.identity]; other == nil {
			other = m.owner
		}
		if other == nil {
			return r, s.understands(r)
		}
		if err := s.wait(ctx, other, 0); err != nil {
			return nil, &downError{"row", err}
		}
	}
}

// understands refuses to act on a row of which, or of whose marker, only a newer
// release knows what it says.
func (s *Store) understands(r *row) error {
	acted := sqlform.Acted{Number: r.Number, State: string(r.State), Outcome: int64(semel.Parked), Inbox: rowsName, Markers: markersName}
	if m, there := s.markers[r.key.identity]; there {
		acted.Outcome = int64(m.outcome)
	}
	_, err := acted.Understood()
	return err
}

func (s *Store) record(a contract.Act, row int64, result string) {
	a.Row, a.Result, a.At = row, result, s.now()
	s.acts = append(s.acts, a)
}

// Discard implements contract.Inbox.
func (s *Store) Discard(ctx context.Context, number, revision int64, a contract.Act) error {
	if err := s.ask("rows"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(ctx, number, revision)
	if err != nil {
		return err
	}
	if err := r.State.MayBecome(contract.StateDiscarded); err != nil {
		return fmt.Errorf("row %d %w", number, err)
	}
	r.State = contract.StateDiscarded
	s.touch(r)
	if !r.Conflict && s.markers[r.key.identity].outcome != semel.Applied {
		s.setOutcome(r.key.identity, semel.Discarded)
	}
	s.record(a, number, "done")
	return nil
}

// FailRetry implements contract.Inbox.
func (s *Store) FailRetry(ctx context.Context, number, revision int64, errorText string, a contract.Act) error {
	if err := s.ask("rows"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(ctx, number, revision)
	if err != nil {
		return err
	}
	r.Attempts++
	r.LastError = cut(errorText)
	if r.FirstError == "" {
		r.FirstError = r.LastError
	}
	s.touch(r)
	s.record(a, number, r.LastError)
	return nil
}

// Acts implements contract.Inbox. A limit of 0 means 1,000.
func (s *Store) Acts(_ context.Context, number int64, limit int) ([]contract.Act, error) {
	if limit <= 0 {
		limit = 1000
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []contract.Act
	for _, a := range s.acts {
		if len(found) < limit && (number == 0 || a.Row == number) {
			found = append(found, a)
		}
	}
	return found, nil
}

// BeginRow implements contract.RowRetrier.
func (s *Store) BeginRow(ctx context.Context, _ contract.TxOptions, number, revision int64, a contract.Act) (contract.Batch[*Tx], error) {
	if err := s.ask("begin"); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.find(ctx, number, revision)
	if err != nil {
		return nil, err
	}
	if err := r.State.MayBecome(contract.StateCompleted); err != nil {
		return nil, fmt.Errorf("row %d %w: %w", number, err, semel.ErrChanged)
	}
	if s.markers[r.key.identity].outcome == semel.Applied {
		return nil, fmt.Errorf("row %d: %w", number, semel.ErrConflict)
	}
	b := s.open()
	b.retry = &retried{r, a}
	s.held[r.key.identity] = b
	return b, nil
}

// complete ends the row that the batch retried; the store's lock is held.
func (b *batch) complete() {
	if b.retry == nil {
		return
	}
	s, r := b.store, b.retry.row
	r.State = contract.StateCompleted
	r.Attempts++
	s.touch(r)
	s.markers[r.key.identity] = marker{fingerprint: r.Fingerprint, outcome: semel.Applied}
	s.record(b.retry.act, r.Number, "done")
}
