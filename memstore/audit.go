package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/audit"
)

// mostSealed is the default limit of audit records to add to the chain, and of audit records to return.
const mostSealed = 1000

// chain is the audit chain: the copies of audit records with their hashes.
type chain struct {
	lines []admin.Seal
	end   admin.SealHead
	of    map[int64]int64 // sequence in the chain, by the number of the audit record
}

// roundTime rounds a time to the precision of the audit chain.
func roundTime(t time.Time) time.Time { return time.UnixMicro(t.UnixMicro()) }

// Seal implements admin.Auditor.
func (s *Store) Seal(_ context.Context, o admin.Sealing) (done admin.Sealed, err error) {
	if err := s.lock("seal"); err != nil {
		return done, err
	}
	defer s.mu.Unlock()
	sealed := s.chain // a copy, so that the chain is unchanged if At panics
	sealed.lines = slices.Clone(sealed.lines)
	for _, act := range s.acts {
		if s.chain.of[act.Number] > 0 || done.Lines == cmp.Or(max(o.Most, 0), mostSealed) {
			continue
		}
		if err := audit.MaySeal(&o, sealed.end); err != nil {
			return admin.Sealed{}, err
		}
		if o.At != nil {
			o.At(done.Lines)
		}
		act.At = roundTime(act.At)
		line := audit.Next(o.Key, sealed.end, act, roundTime(s.now()))
		sealed.lines, sealed.end = append(sealed.lines, line), audit.HeadOf(o.Key, line)
		done.Lines++
	}
	s.chain.lines, s.chain.end = sealed.lines, sealed.end
	for _, line := range s.chain.lines[len(s.chain.lines)-done.Lines:] {
		s.chain.of[line.Act.Number] = line.Sequence
	}
	return done, nil
}

// SealHead implements admin.Auditor.
func (s *Store) SealHead(context.Context) (admin.SealHead, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chain.end, nil
}

// Seals implements admin.Auditor.
func (s *Store) Seals(_ context.Context, after int64, limit int) (all []admin.AuditedSeal, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.chain.lines {
		if line.Sequence > after && len(all) < cmp.Or(max(limit, 0), mostSealed) {
			now := s.acts[line.Act.Number-1]
			now.At = roundTime(now.At)
			all = append(all, admin.AuditedSeal{Seal: line, Now: &now})
		}
	}
	return all, nil
}

// AuditedActs implements admin.Auditor.
func (s *Store) AuditedActs(_ context.Context, after int64, limit int) (all []admin.AuditedAct, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, act := range s.acts {
		if act.Number > after && len(all) < cmp.Or(max(limit, 0), mostSealed) {
			act.At = roundTime(act.At)
			all = append(all, admin.AuditedAct{Act: act, Sequence: s.chain.of[act.Number]})
		}
	}
	return all, nil
}
