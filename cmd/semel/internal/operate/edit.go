package operate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/linediff"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// EditView shows an edit of a row's payload.
type EditView struct {
	// Edit is the number of the edit, starting at 1; 0 if the edit was not made.
	Edit int        `json:"edit,omitempty"`
	Who  string     `json:"who,omitempty"`
	At   *time.Time `json:"at,omitempty"`
	// Before and After are the SHA-256 sums of the payloads, in hexadecimal.
	Before     string `json:"sha256_before"`
	After      string `json:"sha256_after"`
	SizeBefore int    `json:"size_before"`
	SizeAfter  int    `json:"size_after"`
	// Diff is empty if a payload is not text, or if no diff was requested.
	Diff string `json:"diff,omitempty"`
	// Removed reports that the payload before the edit was deleted together with the row's current payload.
	Removed bool `json:"removed,omitempty"`
}

// NewEdit describes the replacement of one payload by another.
func NewEdit(before, after []byte) EditView {
	b, a := sha256.Sum256(before), sha256.Sum256(after)
	v := EditView{Before: hex.EncodeToString(b[:]), After: hex.EncodeToString(a[:]), SizeBefore: len(before), SizeAfter: len(after)}
	v.Diff, _ = linediff.Payloads(before, after)
	return v
}

// Editable returns a row with its payload, or an error if the payload must not be replaced. For the check,
// Editable uses nil as the new payload, because nil is valid for every editable row.
func (b Box) Editable(ctx context.Context, number int64) (store.StoredRow, error) {
	rows, err := b.Inbox.Rows(ctx, store.RowFilter{Numbers: []int64{number}, Bodies: true, Limit: 1})
	if err != nil {
		return store.StoredRow{}, fmt.Errorf("store %s: row %d: %w", b.Store, number, err)
	}
	if len(rows) == 0 {
		return store.StoredRow{}, fmt.Errorf("store %s has no row %d; ls shows what there is", b.Store, number)
	}
	r := rows[0]
	if err := admin.MayEdit(&r, nil); err != nil {
		return r, err
	}
	if r.Message == nil {
		return r, fmt.Errorf("row %d could not be read completely: %s", number, r.LastError)
	}
	first, found, err := b.firstMarker(ctx, r)
	switch {
	case err != nil:
		return r, fmt.Errorf("store %s: row %d: look up its identity: %w", b.Store, number, err)
	case found && (first.Outcome == store.Applied || first.Outcome == store.Waiting):
		return r, fmt.Errorf("row %d: %w", number, semel.ErrConflict)
	}
	return r, nil
}

// Editing describes an edit of a row.
type Editing struct {
	Body []byte
	// Type is the type of the message with the new payload. If Type is empty, the row keeps its type.
	Type string
	// Who and Why are written to the audit trail.
	Who, Why string
	// At is called before and after the edit, for tests; may be nil.
	At func(ReplayPoint)
}

func (e Editing) reachPoint(p ReplayPoint) {
	if e.At != nil {
		e.At(p)
	}
}

// Edit replaces the payload of a row, unless the payload changed after it was read. If a redelivery is
// counted on the row after the payload was read, Edit still replaces the payload.
func (b Box) Edit(ctx context.Context, seen store.StoredRow, e Editing) error {
	e.reachPoint(BeforeEdit)
	defer e.reachPoint(AfterEdit)
	act := store.Act{Verb: string(admin.Edit), Who: e.Who, Why: e.Why, Row: seen.Number}
	for tries := 0; ; tries++ {
		err := b.Editor.Edit(ctx, seen.Number, seen.Revision, e.Body, e.Type, act)
		if !errors.Is(err, semel.ErrChanged) || tries == maxChanges {
			return err
		}
		now, again := b.Editable(ctx, seen.Number)
		switch {
		case again != nil:
			return again
		case !bytes.Equal(now.Message.Body, seen.Message.Body):
			return err
		}
		seen = now
	}
}

// edits returns the edits of a row. With payload set, the edits include diffs.
func (b Box) edits(ctx context.Context, r store.StoredRow, payload bool) ([]EditView, error) {
	if b.Editor == nil {
		return nil, nil
	}
	all, err := b.Editor.Edits(ctx, r.Number, payload)
	if err != nil {
		return nil, fmt.Errorf("store %s: edits of row %d: %w", b.Store, r.Number, err)
	}
	var views []EditView
	for i, e := range all {
		at := e.At
		v := EditView{Edit: e.Number, Who: e.Who, At: &at, Before: hex.EncodeToString(e.Before[:]), After: hex.EncodeToString(e.After[:]),
			SizeBefore: e.SizeBefore, SizeAfter: e.SizeAfter, Removed: e.Removed}
		if payload && !e.Removed {
			var is []byte
			if i+1 < len(all) {
				is = all[i+1].Was
			} else if r.Message != nil {
				is = r.Message.Body
			}
			v.Diff, _ = linediff.Payloads(e.Was, is)
		}
		views = append(views, v)
	}
	return views, nil
}
