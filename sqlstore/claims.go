package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// errClaimLost: a claim does not stand that a batch was to end.
var errClaimLost = &storeError{"end of claims", store.ClassClaimLost, store.ErrClaimLost}

// claiming is what differs between dialects of claims.
type claiming interface {
	claim(ctx context.Context, s *Store, o store.ClaimOptions) ([]store.Claimed, error)
	held(ctx context.Context, s *Store, consumer string, t store.Token) ([]store.Claimed, error)
	// cutAhead cuts waits of rows that were written while the clock was ahead, of named ones or
	// of all, and returns how many, and by how much the furthest.
	cutAhead(ctx context.Context, s *Store, only string) (rows int, by time.Duration, err error)
	// extend, start and end return the indexes of the claims that do not stand.
	extend(ctx context.Context, s *Store, claims []store.Claim, lease time.Duration) ([]int, error)
	start(ctx context.Context, s *Store, claims []store.Claim) ([]int, error)
	calls(ctx context.Context, s *Store, claims []store.Claim, lease time.Duration) ([]store.CallStarted, error)
	end(ctx context.Context, s *Store, endings []store.ClaimEnding) ([]int, error)
	retake(ctx context.Context, s *Store, numbers []int64, from []store.Token, to store.Token) ([]store.Reclaimed, error)
	// look answers for claims that stand, in a batch's transaction; done says that
	// other code has applied the identity. close ends them there, or says errClaimLost.
	look(ctx context.Context, s *Store, tx *sql.Tx, claims []store.Claim, stands func(k int, done bool)) error
	close(ctx context.Context, s *Store, tx *sql.Tx, endings []store.ClaimEnding) error
}

func claimsOf(s *Store) claiming {
	if s.postgres != nil {
		return postgresClaims{}
	}
	return sqliteClaims{}
}

// Claim implements store.Leases.
func (s *Store) Claim(ctx context.Context, o store.ClaimOptions) ([]store.Claimed, error) {
	s.cutAhead(ctx, &o)
	all, err := claimsOf(s).claim(ctx, s, o)
	if err == nil {
		all, err = s.withoutOver(ctx, all)
	}
	s.refuseForeign(all, o.Consumer)
	return all, s.answer("claim", err)
}

// refuseForeign marks claimed rows as unreadable that belong to another consumer's scope. Claims
// find rows by a column of their own, which whoever can write the table can change; the scope is
// what an encrypted message is bound to.
func (s *Store) refuseForeign(all []store.Claimed, consumer string) {
	if s.crypt.Cipher == nil {
		return
	}
	for i := range all {
		if r := &all[i].Row; r.Key.Consumer != consumer && r.Unreadable == "" {
			r.Unreadable = fmt.Sprintf("the row was changed in the database: it is listed for consumer %q and belongs to consumer %q", consumer, r.Key.Consumer)
			r.Message.Key, r.Message.Body, r.Message.Headers = nil, nil, nil
		}
	}
}

// Held implements store.Leases.
func (s *Store) Held(ctx context.Context, consumer string, t store.Token) ([]store.Claimed, error) {
	all, err := claimsOf(s).held(ctx, s, consumer, t)
	s.refuseForeign(all, consumer)
	return all, s.answer("claims that are held", err)
}

// Extend implements store.Leases.
func (s *Store) Extend(ctx context.Context, claims []store.Claim, lease time.Duration) ([]int, error) {
	lost, err := claimsOf(s).extend(ctx, s, claims, lease)
	return lost, s.answer("extension of leases", err)
}

// Start implements store.Leases.
func (s *Store) Start(ctx context.Context, claims []store.Claim) ([]int, error) {
	lost, err := claimsOf(s).start(ctx, s, claims)
	return lost, s.answer("start of claims", err)
}

// End implements store.Leases.
func (s *Store) End(ctx context.Context, endings []store.ClaimEnding) ([]int, error) {
	lost, err := claimsOf(s).end(ctx, s, endings)
	return lost, s.answer("end of claims", err)
}

// Reclaim implements store.Leases.
func (s *Store) Reclaim(ctx context.Context, numbers []int64, from []store.Token, to store.Token) ([]store.Reclaimed, error) {
	all, err := claimsOf(s).retake(ctx, s, numbers, from, to)
	return all, s.answer("retaking claims", err)
}

// Pending implements store.Inbox.
func (s *Store) Pending(ctx context.Context, consumer string) (store.Pending, error) {
	var p store.Pending
	var next, oldest int64
	err := s.db.QueryRowContext(ctx, s.sql.Pending, []byte(consumer)).Scan(&p.Due, &p.Later, &p.InProgress, &p.Blocked, &next, &oldest)
	if err != nil {
		return p, s.blameless("pending", err)
	}
	p.Next, p.Oldest = time.Duration(next)*time.Millisecond, time.Duration(oldest)*time.Millisecond
	return p, nil
}

// withRows are the statements that return rows.
func (s *Store) withRows() []*string {
	all := []*string{&s.sql.Rows, &s.sql.Held}
	if s.postgres != nil {
		return append(all, &s.postgres.Claim)
	}
	return append(all, &s.sqlite.Claimable)
}

// claimedNow is a row that was read before it was claimed.
func claimedNow(r store.StoredRow, suspect bool) store.StoredRow {
	if suspect {
		r.Started = max(r.Started, 1)
	}
	r.State, r.DueAt = store.StateInProgress, time.Time{}
	r.Revision++
	return r
}

// lostOf are the indexes up to n that do not stand.
func lostOf(n int, stand []int) (lost []int) {
	stands := make([]bool, n)
	for _, i := range stand {
		stands[i] = true
	}
	for i := range n {
		if !stands[i] {
			lost = append(lost, i)
		}
	}
	return lost
}

// indexes reads a column of indexes.
func indexes(rows *sql.Rows, err error) ([]int, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []int
	for rows.Next() {
		var i int
		if err := rows.Scan(&i); err != nil {
			return nil, err
		}
		all = append(all, i)
	}
	return all, rows.Err()
}

// lookAt answers the marks of a batch that ask for claims, and returns the others
// with their places.
func (b *batch) lookAt(ctx context.Context, marks []store.Mark, verdicts []store.Verdict) error {
	var claims []store.Claim
	var at []int
	for i := range marks {
		if marks[i].Claim.Token != 0 {
			claims, at = append(claims, marks[i].Claim), append(at, i)
			verdicts[i] = store.Verdict{Kind: store.ClaimLost}
		}
	}
	if len(claims) == 0 {
		return nil
	}
	return claimsOf(b.store).look(ctx, b.store, b.tx, claims, func(k int, done bool) { verdicts[at[k]] = sqlform.Standing(done) })
}
