package operate

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/audit"
)

// AuditView is a recorded command of a store, with the command's position in the audit chain.
type AuditView struct {
	Store string `json:"store"`
	// Sequence is the number of the command's line in the audit chain; 0 if the command has no line yet.
	Sequence int64     `json:"sequence"`
	Number   int64     `json:"number"`
	At       time.Time `json:"at"`
	Verb     string    `json:"verb"`
	Who      string    `json:"who"`
	Why      string    `json:"why"`
	// Row is the row that the command changed. If the command did not change a single row, Row is 0 and Why
	// describes the changed object.
	Row    int64  `json:"row,omitempty"`
	Result string `json:"result"`
}

// NewAuditView returns the view of a recorded command. The parameter store is the name of the command's
// store.
func NewAuditView(store string, a admin.AuditedAct) AuditView {
	return AuditView{Store: store, Sequence: a.Sequence, Number: a.Number, At: a.At.UTC(), Verb: a.Verb, Who: a.Who, Why: a.Why, Row: a.Row, Result: a.Result}
}

// AuditedActs yields all recorded commands of a store, ordered by number. After an error, AuditedActs stops.
func AuditedActs(ctx context.Context, s admin.Auditor) iter.Seq2[admin.AuditedAct, error] {
	return func(yield func(admin.AuditedAct, error) bool) {
		for after := int64(math.MinInt64); ; {
			acts, err := s.AuditedActs(ctx, after, page)
			if err != nil {
				yield(admin.AuditedAct{}, err)
				return
			}
			for _, a := range acts {
				if !yield(a, nil) {
					return
				}
				after = a.Number
			}
			if len(acts) < page {
				return
			}
		}
	}
}

// Chain calls the function each for every line of a store's chain, in order. Chain also reads lines that are
// added while Chain runs. Chain returns the end of the chain: the end that the store has recorded, or else
// the last line that was read.
func Chain(ctx context.Context, s admin.Auditor, each func(admin.AuditedSeal) error) (end admin.SealHead, err error) {
	for after := int64(math.MinInt64); ; {
		lines, err := s.Seals(ctx, after, page)
		if err != nil {
			return end, err
		}
		for _, l := range lines {
			if err := each(l); err != nil {
				return end, err
			}
			after = l.Sequence
		}
		if len(lines) == page {
			continue
		}
		now, err := s.SealHead(ctx)
		if err != nil || now == end || now.Sequence <= after {
			return now, err
		}
		end = now // if the next read finds no further lines up to this end, lines are missing
	}
}

// Verified is the result of verifying an audit chain.
type Verified struct {
	Store string `json:"store,omitempty"`
	File  string `json:"file,omitempty"`
	Lines int64  `json:"lines"`
	// Head is the end of the chain. Store Head outside the database, and pass Head to the next verification.
	Head string `json:"head"`
	// Unsealed is the number of commands that have no line in the chain yet. Oldest is the time of the oldest
	// command without a line.
	Unsealed int64      `json:"unsealed"`
	Oldest   *time.Time `json:"oldest_unsealed,omitempty"`
	// Unchecked is the number of lines that were written with a key that the caller did not give. Of the
	// unchecked lines, only the links to the neighbouring lines are checked.
	Unchecked int64 `json:"unchecked"`
	// Findings are the first faults. Total is the number of all faults.
	Findings []audit.Finding `json:"findings"`
	Total    int64           `json:"total"`
}

// Answerable reports whether all findings are listed and concern only lines that were added late or without a
// key. If the caller passes the current Head to later verifications, the later verifications no longer report
// these lines.
func (v Verified) Answerable() bool {
	return v.Lines > 0 && v.Total == int64(len(v.Findings)) && !slices.ContainsFunc(v.Findings, func(f audit.Finding) bool { return f.Kind != audit.Late && f.Kind != audit.Unkeyed })
}

// Verification has the key and the earlier ends of the chain (heads) with which a chain is verified.
type Verification struct {
	Key []byte
	// Heads are earlier ends of the chain that the user stored outside the database.
	Heads []audit.Point
}

func (o Verification) begin() *audit.Verifier {
	v := audit.NewVerifier(o.Key)
	for _, h := range o.Heads {
		v.Expect(h, "the head that was kept")
	}
	return v
}

// Verify verifies the chain of a store, and compares each line with the recorded command.
func (o Verification) Verify(ctx context.Context, store string, s admin.Auditor) (Verified, error) {
	v := o.begin()
	end, err := Chain(ctx, s, func(l admin.AuditedSeal) error {
		v.Add(audit.Line{Seal: l.Seal, Compared: true, Now: l.Now})
		return nil
	})
	if err != nil {
		return Verified{}, err
	}
	v.ExpectEnd(end, "the end that the store has")
	found := verifiedOf(v.End())
	found.Store = store
	for a, err := range AuditedActs(ctx, s) {
		if err != nil {
			return Verified{}, err
		}
		if a.Sequence != 0 {
			continue
		}
		if found.Unsealed++; found.Oldest == nil || a.At.Before(*found.Oldest) {
			found.Oldest = utcOrNil(a.At)
		}
	}
	if len(o.Key) > 0 && end.Sequence == 0 && found.Unsealed > 0 {
		found.Total++
		found.Findings = append(found.Findings, audit.Finding{Sequence: 1, Kind: audit.Removed,
			What: fmt.Sprintf("%d commands are recorded, but the chain is empty: the migration that writes its first line has not run, or the lines were removed", found.Unsealed)})
	}
	if found.Oldest != nil && time.Since(*found.Oldest) > audit.LongestUnsealed {
		found.Total++
		found.Findings = append(found.Findings, audit.Finding{Sequence: end.Sequence + 1, Kind: audit.Late,
			What: "commands recorded more than " + audit.LongestUnsealed.String() + " ago are in no line of the chain: no process seals them (see the logs), or their numbers did not come from the table's sequence"})
	}
	return found, nil
}

func verifiedOf(r audit.Report) Verified {
	return Verified{Lines: r.Lines, Head: r.End.String(), Unchecked: r.Unchecked, Findings: append([]audit.Finding{}, r.Findings...), Total: r.Total}
}

// VerifyFile verifies an exported chain.
func (o Verification) VerifyFile(name string, r io.Reader) (Verified, error) {
	v := o.begin()
	end, err := audit.Read(r, func(s admin.Seal) { v.Add(audit.Line{Seal: s}) })
	if err != nil {
		return Verified{}, err
	}
	if end != nil {
		v.ExpectEnd(*end, "the end that the file has")
	}
	found := verifiedOf(v.End())
	found.File = name
	if end == nil {
		found.Total++
		found.Findings = append(found.Findings, audit.Finding{Sequence: found.Lines + 1, Kind: audit.CutOff, What: "the file has no end record after its last line"})
	}
	return found, nil
}

// SealAll adds to a store's audit chain a line for each command that has no line yet, and returns the number
// of new lines. If begin is true, SealAll may start a new chain with the key. The result elsewhere means that
// another process is adding lines to the chain.
func SealAll(ctx context.Context, s admin.Auditor, key []byte, begin bool) (lines int, elsewhere bool, err error) {
	for {
		done, err := s.Seal(ctx, admin.Sealing{Key: key, Continue: !begin, Most: page, Whole: true})
		lines += done.Lines
		if err != nil || done.Lines < page {
			return lines, done.Elsewhere, err
		}
	}
}
