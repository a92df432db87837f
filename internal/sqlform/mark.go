package sqlform

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strconv"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/newer"
	"github.com/semel-go/semel/store"
)

// Mark is a store.Mark with the values that the tables store.
type Mark struct {
	*store.Mark
	// Key contains the bytes under which the id is stored and compared (see ID). If Key does not contain the id, Long
	// is the id itself.
	Key, Long []byte
}

// Marks computes, for each marker, the values that the tables store.
func Marks(marks []store.Mark) []Mark {
	all := make([]Mark, len(marks))
	for i := range marks {
		key, long := ID(marks[i].ID)
		all[i] = Mark{&marks[i], key, long}
	}
	return all
}

// Sorted returns the indexes of markers in the order in which every batch writes them, so that batches cannot deadlock.
// The order of equal markers does not change. The result does not contain claimed rows, because no marker is written
// for a claimed row.
func Sorted(marks []Mark) []int {
	order := make([]int, 0, len(marks))
	for i := range marks {
		if marks[i].Claim.Token == 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(i, j int) int {
		a, b := &marks[i], &marks[j]
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), bytes.Compare(a.Key, b.Key), cmp.Compare(i, j))
	})
	return order
}

// ErrMissing means that a marker was not inserted and cannot be found. There are two possible causes. Another
// transaction has just removed the marker; a retry will succeed. Or a trigger or a rule prevents the insertion of
// markers.
var ErrMissing = errors.New("a marker could not be written and does not exist: either it was removed at the same time, or a trigger or rule prevents writing it")

// Marker is a stored marker.
type Marker struct {
	Outcome, Version int64
	Sum              []byte
	// Known is true if the inbox already has a row for the same conflict.
	Known bool
}

// Verdict converts a stored marker to the store's answer for a message (new, duplicate, conflict).
func (m Marker) Verdict(c Crypt, asked *Mark) store.Verdict {
	found := store.Found(m.Outcome)
	switch {
	case found.Kind == store.Newer:
		return found
	case !readablePrint(m.Version, m.Sum):
		return store.Verdict{Kind: store.Newer, Was: found.Was}
	case asked.Other(c.ReadPrint(PrintOfID, InnerKey(asked.Key), m.Version, m.Sum)):
		return store.Verdict{Kind: store.Conflict, Known: m.Known}
	}
	return found
}

// NewerError returns the error for an outcome that a newer release wrote.
func NewerError(outcome int64, table string) error {
	return &newer.Error{What: "outcome", Value: strconv.FormatInt(outcome, 10), Table: table}
}

// Sum returns the hash of a fingerprint, or nil if there is no fingerprint.
func Sum(f semel.Fingerprint) []byte {
	if f.Version == 0 {
		return nil
	}
	return f.Sum[:]
}

// Fingerprint is the inverse of Sum.
func Fingerprint(version uint8, sum []byte) semel.Fingerprint {
	f := semel.Fingerprint{Version: version}
	copy(f.Sum[:], sum)
	return f
}

// Conflict returns the part of a row's key that distinguishes a conflict from the first content. Conflict is used if
// sums are not keyed.
func Conflict(f semel.Fingerprint) []byte {
	return append([]byte{f.Version}, f.Sum[:]...)
}
