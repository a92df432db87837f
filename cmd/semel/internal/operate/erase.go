package operate

import (
	"context"
	"fmt"
	"slices"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/store"
)

// Erasure describes the data to erase from a store.
type Erasure struct {
	Filter admin.ErasureFilter
	// Who and Why are written to the audit trail.
	Who, Why string
	// DryRun only counts the data that would be erased.
	DryRun bool
	// Discard discards unfinished rows before they are erased.
	Discard bool
	// Doubted is called in a dry run, for each row that would be discarded and that has a call in progress or
	// with an unknown outcome. Doubted may be nil.
	Doubted func(store.StoredRow)
	// Shown is the maximum number of listed rows that were not erased; 0 means no limit. All rows that were not
	// erased are counted.
	Shown int
	// Progress is called with the counts after each transaction; may be nil.
	Progress func(ErasureReport)
}

// ErasureReport counts the data that was erased from a store, or would be erased.
type ErasureReport struct {
	Store string `json:"store"`
	// Identities is the number of erased identities. Inbox, Results and Keys count the erased inbox rows,
	// results and leased keys.
	Identities int64 `json:"identities"`
	Inbox      int64 `json:"inbox"`
	Results    int64 `json:"results"`
	Keys       int64 `json:"keys"`
	// Discarded is the number of rows that were discarded before they were erased.
	Discarded int64 `json:"discarded"`
	// Left is the number of rows that were not erased. List has the first rows that were not erased.
	Left int64           `json:"left"`
	List []LeftOfErasure `json:"left_rows"`
}

// LeftOfErasure is a row that was not erased.
type LeftOfErasure struct {
	Row      int64            `json:"row"`
	Consumer string           `json:"consumer"`
	Source   string           `json:"source"`
	ID       string           `json:"id"`
	State    admin.State      `json:"state"`
	Why      admin.ErasureWhy `json:"why"`
	// Error is why the row could not be discarded; empty if no discard was attempted.
	Error string `json:"error,omitempty"`
}

// idsAtOnce is the maximum number of ids in one statement.
const idsAtOnce = 500

// Erase erases the rows that the filter chooses, in several transactions, until all rows are checked. After
// an error, the report counts the rows that were erased; the next run of the same erasure continues with the
// remaining rows.
func (b Box) Erase(ctx context.Context, from admin.Eraser, e Erasure) (ErasureReport, error) {
	report := ErasureReport{Store: b.Store, List: []LeftOfErasure{}}
	all := [][]string{nil}
	if len(e.Filter.IDs) > 0 {
		all = slices.Collect(slices.Chunk(slices.Compact(slices.Sorted(slices.Values(e.Filter.IDs))), idsAtOnce))
	}
	for _, ids := range all {
		o := admin.Erasing{Filter: e.Filter, DryRun: e.DryRun, Act: store.Act{Verb: "erase", Who: e.Who, Why: e.Why}}
		for o.Filter.IDs = ids; o.After.Part != admin.ErasureDone; {
			done, err := b.eraseSome(ctx, from, &e, o, &report)
			if err != nil {
				return report, fmt.Errorf("store %s: %w", b.Store, err)
			}
			o.After = done.Next
			if e.Progress != nil {
				e.Progress(report)
			}
		}
	}
	return report, nil
}

// eraseSome erases the next rows, up to a limit. With Discard set, eraseSome discards unfinished rows and
// then checks again. Because the erased rows are gone, the second check reaches further rows.
func (b Box) eraseSome(ctx context.Context, from admin.Eraser, e *Erasure, o admin.Erasing, report *ErasureReport) (admin.Erased, error) {
	for {
		done, err := from.Erase(ctx, o)
		if err != nil {
			return done, err
		}
		report.add(&done)
		var kept map[int64]Result
		if rows := unfinishedRows(done.Left); e.Discard && !e.DryRun && len(rows) > 0 {
			var n int64
			n, kept, err = b.discardRows(ctx, e, rows)
			report.Discarded += n
			if err != nil {
				return done, err
			}
			if n > 0 {
				continue
			}
		}
		report.leave(e, done.Left, kept)
		return done, b.reportDoubted(ctx, e, unfinishedRows(done.Left))
	}
}

// reportDoubted calls Doubted for rows whose call may have taken effect or may still take effect.
func (b Box) reportDoubted(ctx context.Context, e *Erasure, rows []int64) error {
	if e.Doubted == nil || !e.DryRun || len(rows) == 0 {
		return nil
	}
	for r, err := range b.Rows(ctx, store.RowFilter{Numbers: rows}) {
		if err != nil {
			return err
		}
		if r.UnknownOutcome() {
			e.Doubted(r)
		}
	}
	return nil
}

// unfinishedRows returns the rows that prevent the erasure and that may be discarded.
func unfinishedRows(left []admin.ErasureLeft) (rows []int64) {
	for _, l := range left {
		if l.Why == admin.ErasureUnfinished {
			rows = append(rows, l.Row)
		}
	}
	return rows
}

// discardRows discards rows. The method returns the number of discarded rows, and the results of the
// rows that could not be discarded.
func (b Box) discardRows(ctx context.Context, e *Erasure, rows []int64) (n int64, others map[int64]Result, err error) {
	others = map[int64]Result{}
	for r, err := range b.Carry(ctx, Order{Verb: admin.Discard, Filter: store.RowFilter{Numbers: rows}, Who: e.Who, Why: e.Why}) {
		switch {
		case err != nil:
			return n, others, err
		case r.Result == Done:
			n++
		default:
			others[r.Number] = r
		}
	}
	return n, others, nil
}

func (r *ErasureReport) add(done *admin.Erased) {
	r.Identities, r.Inbox = r.Identities+done.Identities, r.Inbox+done.Rows
	r.Results, r.Keys = r.Results+done.Results, r.Keys+done.Keys
}

// leave adds the rows that were not erased to the report. The parameter kept has the results of rows that
// could not be discarded.
func (r *ErasureReport) leave(e *Erasure, left []admin.ErasureLeft, kept map[int64]Result) {
	for _, l := range left {
		r.Left++
		if e.Shown == 0 || len(r.List) < e.Shown {
			of := kept[l.Row]
			if of.Result == Failed { // for example because another session holds a lock on the row
				l.Why = admin.ErasureBusy
			}
			r.List = append(r.List, LeftOfErasure{l.Row, l.Key.Consumer, l.Key.Source, legible.Printable(l.Key.ID), admin.StateOf(l.State), l.Why, of.Error})
		}
	}
}
