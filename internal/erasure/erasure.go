// Package erasure implements the erasure of an identity for every store. An identity is erased together with
// all messages that it has caused, or not at all.
package erasure

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/digest"
	"github.com/semel-go/semel/internal/intents"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/store"
)

// Most is the maximum number of alternatives of each kind in a filter.
const Most = 1000

// Fits returns an error if the filter is invalid.
func Fits(f *admin.ErasureFilter) error {
	for what, n := range map[string]int{"consumers": len(f.Consumers), "sources": len(f.Sources), "ids": len(f.IDs)} {
		if n > Most {
			return fmt.Errorf("the filter has %d %s; the maximum is %d; run further erasures for the rest", n, what, Most)
		}
	}
	return nil
}

// Identity is an identity that may be erased.
type Identity struct{ Key semel.Key }

// Row is an inbox row with only the fields that an erasure needs: key, state, reason and time, and the message's
// topic, type and headers.
type Row struct {
	store.StoredRow
	// Unreadable means that only a hash of the id is known. Headless means that the headers cannot be read.
	Unreadable, Headless bool
}

// Held gives access to the rows of a store in one transaction.
type Held interface {
	// Generations returns the numbers of a consumer's generations. If the consumer never had generations, the
	// result is empty.
	Generations(ctx context.Context, consumer string) ([]int64, error)
	// Rows returns all rows of an identity by number.
	Rows(ctx context.Context, of Identity) ([]Row, error)
	// Caused returns the rows that a message caused.
	Caused(ctx context.Context, cause []byte) ([]Row, error)
	// Lock locks a row, so that no other transaction changes the row. If another transaction has locked the
	// row, or if the row may no longer be erased, Lock returns false.
	Lock(ctx context.Context, number int64) (bool, error)
	// EraseRow erases a locked row except its topic and type. EraseKept erases results and leased keys.
	EraseRow(ctx context.Context, r *Row) error
	EraseKept(ctx context.Context, of Identity) (results, keys int64, err error)
	// Record writes an audit record.
	Record(ctx context.Context, number int64, result string) error
}

// Walk erases the identities that a store finds.
type Walk struct {
	*admin.Erasing
	Held Held
	Done *admin.Erased

	names   map[string][]string // names of a consumer's generations
	counted map[Identity]bool   // identities that a dry run has counted
}

// Next returns the position at which the erasure continues after the end of a part.
func Next(o *admin.Erasing) admin.ErasureMark {
	if o.Filter.OfRows() {
		return admin.ErasureMark{Part: admin.ErasureDone}
	}
	return admin.ErasureMark{Part: o.After.Part + 1}
}

// Found erases an identity that the store has found. The parameter where is the position at which the store has found
// the identity. If the erasure has found the identity before, or if the filter does not select the identity, Found does
// nothing.
func (w *Walk) Found(ctx context.Context, where admin.ErasureMark, of Identity, at time.Time) error {
	own, err := w.generations(ctx, of)
	if err != nil || w.DryRun && w.counted[of] {
		return err
	}
	all, err := w.gather(ctx, own)
	if err != nil {
		return err
	}
	first := firstToErase(&w.Filter, rowsOf(all[:len(own)]))
	switch where.Part {
	case admin.ErasureRows:
		if first == nil || first.Number != where.Number {
			return nil
		}
		if first.Headless {
			w.recordLeft(first, admin.ErasureUnreadable)
			return nil
		}
	default: // if one of its rows is selected, the identity was found through that row
		if first != nil || !w.Filter.OfTime(at) {
			return nil
		}
	}
	free, err := w.lockRows(ctx, all)
	if err != nil || !free {
		return err
	}
	for _, u := range all {
		if err := w.erase(ctx, u); err != nil {
			return err
		}
	}
	return nil
}

// generations returns an identity in each generation of its consumer, because a rebuild has processed the
// message of the identity again. If the filter names consumers, generations returns only identities of these
// consumers.
func (w *Walk) generations(ctx context.Context, of Identity) ([]Identity, error) {
	public, _ := admin.GenerationOf(of.Key.Consumer)
	names, known := w.names[public]
	if !known {
		numbers, err := w.Held.Generations(ctx, public)
		if err != nil {
			return nil, err
		}
		for _, n := range numbers {
			names = append(names, admin.GenerationName(public, n))
		}
		if w.names == nil {
			w.names = map[string][]string{}
		}
		w.names[public] = names
	}
	all := []Identity{of}
	for _, name := range names {
		other := of
		if other.Key.Consumer = name; other != of && (len(w.Filter.Consumers) == 0 || slices.Contains(w.Filter.Consumers, name)) {
			all = append(all, other)
		}
	}
	return all, nil
}

// rowsOf returns the rows of units, sorted by number.
func rowsOf(units []unit) (all []Row) {
	for _, u := range units {
		all = append(all, u.rows...)
	}
	slices.SortFunc(all, func(a, b Row) int { return cmp.Compare(a.Number, b.Number) })
	return all
}

// firstToErase returns the first row that the filter selects and that is not erased yet. If the headers of a row
// cannot be read, the filter's condition on headers is assumed to hold.
func firstToErase(f *admin.ErasureFilter, rows []Row) *Row {
	for i := range rows {
		r := &rows[i]
		if r.Reason == reasonname.Erased {
			continue
		}
		asked := *f
		if r.Headless {
			asked.Header = semel.Header{}
		}
		if asked.OfRow(&r.StoredRow) {
			return r
		}
	}
	return nil
}

// unit is an identity with its rows.
type unit struct {
	Identity
	rows []Row
}

// gather returns the given identities, followed by all identities that were caused by them, directly or indirectly.
func (w *Walk) gather(ctx context.Context, of []Identity) (all []unit, err error) {
	known := map[Identity]bool{}
	for _, one := range of {
		known[one] = true
	}
	for queue := slices.Clone(of); len(queue) > 0; queue = queue[1:] {
		rows, err := w.Held.Rows(ctx, queue[0])
		if err != nil {
			return nil, err
		}
		all = append(all, unit{queue[0], rows})
		caused, err := w.Held.Caused(ctx, intents.Cause(queue[0].Key))
		if err != nil {
			return nil, err
		}
		for _, r := range caused {
			next := Identity{r.Key}
			if r.Unreadable {
				all[0].rows = append(all[0].rows, r)
				continue
			}
			if !known[next] {
				known[next] = true
				queue = append(queue, next)
			}
		}
	}
	return all, nil
}

// lockRows locks the rows of all units and reports whether all these rows may be erased.
func (w *Walk) lockRows(ctx context.Context, all []unit) (free bool, err error) {
	free = true
	for _, u := range all {
		for i := range u.rows {
			r := &u.rows[i]
			switch {
			case r.Reason == reasonname.Erased || r.State.Erasable() && !r.Unreadable:
				continue
			case r.Unreadable:
				w.recordLeft(r, admin.ErasureUnreadable)
			case !r.State.Known():
				w.recordLeft(r, admin.ErasureNewer)
			default:
				w.recordLeft(r, admin.ErasureUnfinished)
			}
			free = false
		}
	}
	for _, u := range all {
		for i := range u.rows {
			r := &u.rows[i]
			if !free || r.Reason == reasonname.Erased {
				continue
			}
			if free, err = w.Held.Lock(ctx, r.Number); err != nil {
				return false, err
			}
			if !free {
				w.recordLeft(r, admin.ErasureBusy)
			}
		}
	}
	return free, nil
}

func (w *Walk) recordLeft(r *Row, why admin.ErasureWhy) {
	w.Done.Left = append(w.Done.Left, admin.ErasureLeft{Key: r.Key, Row: r.Number, State: r.State, Why: why})
}

// erase erases an identity, unless it has no data that can be erased.
func (w *Walk) erase(ctx context.Context, u unit) error {
	if w.DryRun {
		if w.counted == nil {
			w.counted = map[Identity]bool{}
		}
		w.counted[u.Identity] = true
	}
	var rows, number int64
	for i := range u.rows {
		r := &u.rows[i]
		if number == 0 {
			number = r.Number
		}
		if r.Reason == reasonname.Erased {
			continue
		}
		if err := w.Held.EraseRow(ctx, r); err != nil {
			return err
		}
		rows++
	}
	results, keys, err := w.Held.EraseKept(ctx, u.Identity)
	if err != nil || rows+results+keys == 0 {
		return err
	}
	w.Done.Identities, w.Done.Rows = w.Done.Identities+1, w.Done.Rows+rows
	w.Done.Results, w.Done.Keys = w.Done.Results+results, w.Done.Keys+keys
	result := "done"
	if number == 0 {
		result = Result(u.Key)
	}
	return w.Held.Record(ctx, number, result)
}

// Result returns a text for the field Result of an audit record: a hash of the identity. The field has this text if an
// identity without rows was erased.
func Result(key semel.Key) string {
	h := sha256.New()
	digest.Begin(h, "erased/1")
	for _, part := range []string{key.Consumer, key.Source, key.ID} {
		digest.Part(h, []byte(part))
	}
	return "done: identity " + hex.EncodeToString(h.Sum(nil)[:16])
}
