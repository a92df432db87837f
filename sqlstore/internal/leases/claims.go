// Package leases claims inbox rows for a limited time, and ends these claims.
package leases

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore/internal/daily"
	"github.com/semel-go/semel/sqlstore/internal/database"
	"github.com/semel-go/semel/sqlstore/internal/inbox"
	"github.com/semel-go/semel/sqlstore/internal/operators"
	"github.com/semel-go/semel/sqlstore/internal/ordering"
	"github.com/semel-go/semel/store"
)

// Store implements store.Leases.
type Store struct {
	db              *database.DB
	mu              sync.Mutex
	nextAheadSearch time.Time // time of the next search of cutAhead in all rows; guarded by mu
}

// New returns the Store of a database.
func New(db *database.DB) *Store { return &Store{db: db} }

// The shortest interval (aheadEvery) of searches for rows that were written while the database's clock was ahead. A
// search reads all rows that wait, so searches may use at most the part 1/aheadShare of the time.
const (
	aheadEvery = 30 * time.Second
	aheadShare = 200
)

// cutAhead shortens the waits of rows that were written while the database's clock was ahead. The method examines all
// rows every half minute, and the rows in o.Numbers at once. cutAhead sends a separate statement, because the index of
// the claiming statement does not contain the time of the change. If cutAhead fails, the claim continues, because the
// claim finds rows whose wait has ended without the help of cutAhead.
func (s *Store) cutAhead(ctx context.Context, o *store.ClaimOptions) {
	only := ""
	if len(o.Numbers) > 0 {
		only = sqlform.JSON(o.Numbers)
	} else if !s.cutsAhead() {
		return
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, o.Lease/4) // the rest of the time is for the claim
	rows, by, err := inbox.CutAhead(limited, s.db, only)
	cancel()
	if only == "" {
		s.mu.Lock()
		s.nextAheadSearch = time.Now().Add(max(aheadEvery, aheadShare*time.Since(began)))
		if err == nil && rows >= inbox.MostAhead {
			s.nextAheadSearch = time.Time{} // the next claim examines the remaining rows
		}
		s.mu.Unlock()
	}
	if err == nil && rows > 0 && o.Ahead != nil {
		o.Ahead(rows, by)
	}
}

// cutsAhead reports whether it is time for a search in all rows, and sets the time of the next search.
func (s *Store) cutsAhead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if now.Before(s.nextAheadSearch) {
		return false
	}
	s.nextAheadSearch = now.Add(aheadEvery)
	return true
}

// StartCalls implements store.Leases.
func (s *Store) StartCalls(ctx context.Context, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error) {
	all, err := ClaimsOf(s.db).calls(ctx, s.db, claims, lease)
	return all, s.db.Answer("start of calls", err)
}

// errClaimLost means that a batch must end a claim that is no longer valid.
var errClaimLost = &database.Error{Doing: "end of claims", Class: store.ClassClaimLost, Err: store.ErrClaimLost}

// claiming is the interface of the operations on claims that differ between the dialects.
type claiming interface {
	claim(ctx context.Context, s *database.DB, o store.ClaimOptions) ([]store.Claimed, error)
	held(ctx context.Context, s *database.DB, consumer string, t store.Token) ([]store.Claimed, error)
	// The methods extend, start and end return the indexes of the claims that are no longer valid.
	extend(ctx context.Context, s *database.DB, claims []store.Claim, lease time.Duration) ([]int, error)
	start(ctx context.Context, s *database.DB, claims []store.Claim) ([]int, error)
	calls(ctx context.Context, s *database.DB, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error)
	end(ctx context.Context, s *database.DB, endings []store.ClaimEnding) ([]int, error)
	retake(ctx context.Context, s *database.DB, numbers []int64, from []store.Token, to store.Token) ([]store.Reclaimed, error)
	// Look checks claims in the transaction of a batch, and calls the function stands for each valid claim. If other
	// code has already applied the identity, the function stands gets true for its parameter done. Close ends claims in
	// the same transaction, or returns errClaimLost.
	Look(ctx context.Context, s *database.DB, tx *sql.Tx, claims []store.Claim, stands func(k int, done bool)) error
	Close(ctx context.Context, s *database.DB, tx *sql.Tx, endings []store.ClaimEnding) error
}

// ClaimsOf returns the operations on claims of a database's dialect.
func ClaimsOf(s *database.DB) claiming {
	if s.Postgres != nil {
		return postgresClaims{}
	}
	return sqliteClaims{}
}

// Claim implements store.Leases.
func (s *Store) Claim(ctx context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
	s.cutAhead(ctx, &o)
	all, err := ClaimsOf(s.db).claim(ctx, s.db, o)
	if err == nil {
		all, err = withoutOver(ctx, s.db, all)
	}
	refuseForeign(s.db, all, o.Consumer)
	return all, s.db.Answer("claim", err)
}

// refuseForeign marks claimed rows as unreadable if their scope belongs to another consumer. A claim finds rows by a
// separate column for the consumer. Everybody who can write to the table can change the column for the consumer, but an
// encrypted message is bound to its scope (consumer, source and generation).
func refuseForeign(db *database.DB, all []store.Claimed, consumer string) {
	if db.Crypt.Cipher == nil {
		return
	}
	for i := range all {
		if r := &all[i].Row; r.Key.Consumer != consumer && r.Unreadable == "" {
			r.Unreadable = fmt.Sprintf("the row was changed in the database: it is listed for consumer %q but belongs to consumer %q", consumer, r.Key.Consumer)
			r.Message.Key, r.Message.Body, r.Message.Headers = nil, nil, nil
		}
	}
}

// Held implements store.Leases.
func (s *Store) Held(ctx context.Context, consumer string, t store.Token) ([]store.Claimed, error) {
	all, err := ClaimsOf(s.db).held(ctx, s.db, consumer, t)
	refuseForeign(s.db, all, consumer)
	return all, s.db.Answer("claims that are held", err)
}

// Extend implements store.Leases.
func (s *Store) Extend(ctx context.Context, claims []store.Claim, lease time.Duration) ([]int, error) {
	lost, err := ClaimsOf(s.db).extend(ctx, s.db, claims, lease)
	return lost, s.db.Answer("extension of leases", err)
}

// Start implements store.Leases.
func (s *Store) Start(ctx context.Context, claims []store.Claim) ([]int, error) {
	lost, err := ClaimsOf(s.db).start(ctx, s.db, claims)
	return lost, s.db.Answer("start of claims", err)
}

// End implements store.Leases.
func (s *Store) End(ctx context.Context, endings []store.ClaimEnding) ([]int, error) {
	lost, err := ClaimsOf(s.db).end(ctx, s.db, endings)
	return lost, s.db.Answer("end of claims", err)
}

// Reclaim implements store.Leases.
func (s *Store) Reclaim(ctx context.Context, numbers []int64, from []store.Token, to store.Token) ([]store.Reclaimed, error) {
	all, err := ClaimsOf(s.db).retake(ctx, s.db, numbers, from, to)
	return all, s.db.Answer("retaking claims", err)
}

// Pending implements store.Inbox.
func (s *Store) Pending(ctx context.Context, consumer string) (store.Pending, error) {
	var p store.Pending
	var next, oldest int64
	err := s.db.Pool.QueryRowContext(ctx, s.db.SQL.Pending, []byte(consumer)).Scan(&p.Due, &p.Later, &p.InProgress, &p.Blocked, &next, &oldest)
	if err != nil {
		return p, s.db.Blameless("pending", err)
	}
	p.Next, p.Oldest = time.Duration(next)*time.Millisecond, time.Duration(oldest)*time.Millisecond
	return p, nil
}

// claimedNow returns the new state of a row that was read before its claim.
func claimedNow(r store.StoredRow, suspect bool) store.StoredRow {
	if suspect {
		r.Started = max(r.Started, 1)
	}
	r.State, r.DueAt = store.StateInProgress, time.Time{}
	r.Revision++
	return r
}

// lostOf returns the indexes of the claims that are lost: the indexes below n that are not in the list of valid claims.
func lostOf(n int, valid []int) (lost []int) {
	stands := make([]bool, n)
	for _, i := range valid {
		stands[i] = true
	}
	for i := range n {
		if !stands[i] {
			lost = append(lost, i)
		}
	}
	return lost
}

// withoutOver ends claims of rows that are already finished according to their markers, and returns the remaining
// claims. The store would not accept the regular end of a claim of a finished row, so the row would be claimed again
// and again. withoutOver checks only suspect claims, because a finished row becomes suspect with its second claim.
func withoutOver(ctx context.Context, db *database.DB, all []store.Claimed) ([]store.Claimed, error) {
	kept := all[:0]
	for _, c := range all {
		over := false
		if c.Suspect {
			var err error
			if over, err = endIfOver(ctx, db, c); err != nil {
				return nil, err
			}
		}
		if !over {
			kept = append(kept, c)
		}
	}
	return kept, nil
}

// endIfOver ends a claim if its row is already finished according to the marker. The result over is true if the row is
// already finished.
func endIfOver(ctx context.Context, db *database.DB, c store.Claimed) (over bool, err error) {
	db, err = daily.OfRow(ctx, db, c.Number)
	if err != nil {
		return false, err
	}
	err = db.Write(ctx, func(tx *sql.Tx) error {
		over = false
		r, err := operators.Look(ctx, db, tx, c.Number, c.Row.Revision)
		if err != nil {
			return err
		}
		if err := operators.ReadTwins(ctx, db, tx, r); err != nil {
			return err
		}
		if r.Owns && r.Outcome == store.Waiting {
			return nil
		}
		state, why := sqlform.Over(r.Marked, r.Marker, r.Owns, r.Others)
		if over = state != ""; !over {
			_, err := tx.ExecContext(ctx, db.SQL.MarkersWait, operators.ActedRows(r))
			return err
		}
		if err := operators.Set(ctx, tx, r, db.SQL.OverRow, string(state), sqlform.OverReason(state), why); err != nil || state == store.StateParked {
			return err
		}
		return ordering.LeaveLines(ctx, db, tx, []int64{r.Number})
	})
	if errors.Is(err, semel.ErrChanged) || errors.Is(err, semel.ErrState) {
		return false, nil // the row was changed, or a newer release wrote it; the regular end of the claim reports this
	}
	return over, err
}
