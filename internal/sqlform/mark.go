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

// Mark is a mark in the form of its table.
type Mark struct {
	*store.Mark
	// Key is the id as it is compared; Long the id itself if Key does not hold it.
	Key, Long []byte
}

// Marks are the marks in the form of their table.
func Marks(marks []store.Mark) []Mark {
	all := make([]Mark, len(marks))
	for i := range marks {
		key, long := ID(marks[i].ID)
		all[i] = Mark{&marks[i], key, long}
	}
	return all
}

// Sorted are the indexes of the marks in the order in which every batch writes
// them, so that two never wait for each other; of equal ones the first comes first.
// Marks that ask for a claim write nothing and are not among them.
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

// ErrMissing: whoever removed the marker has just committed, and another try
// finds it fresh, or something keeps markers from being written.
var ErrMissing = errors.New("a marker is neither written nor there: it was removed while it was marked, or is kept from being written")

// Marker is a marker that a mark met, as its table has it.
type Marker struct {
	Outcome, Version int64
	Sum              []byte
	// Known says that a row of the same conflict is there.
	Known bool
}

// Verdict is the answer to a mark.
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

// NewerError says of a number in a table of markers that a newer release wrote it.
func NewerError(outcome int64, table string) error {
	return &newer.Error{What: "outcome", Value: strconv.FormatInt(outcome, 10), Table: table}
}

// Sum is nil where there is no fingerprint.
func Sum(f semel.Fingerprint) []byte {
	if f.Version == 0 {
		return nil
	}
	return f.Sum[:]
}

// Fingerprint undoes Sum.
func Fingerprint(version uint8, sum []byte) semel.Fingerprint {
	f := semel.Fingerprint{Version: version}
	copy(f.Sum[:], sum)
	return f
}

// Conflict is what a conflict's row carries in its key beside the identity, if its sum is not keyed.
func Conflict(f semel.Fingerprint) []byte {
	return append([]byte{f.Version}, f.Sum[:]...)
}
