package operate

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Skip chooses the streams to skip, and the version to skip to.
type Skip struct {
	Filter StreamFilter
	// To is the version to which a stream is moved; 0 means the version before the first waiting version.
	To int64
	// Who and Why are written to the audit trail.
	Who, Why string
	// DryRun only reports what would be skipped.
	DryRun bool
}

// Skipped is the result of Skip for one stream.
type Skipped struct {
	StreamView
	To int64 `json:"to"`
	// Passed are the numbers of the first rows whose versions were skipped. The messages in the skipped rows
	// will not have an effect.
	Passed []int64 `json:"passed_rows,omitempty"`
	// Result is Done, Would, Refused or Failed.
	Result string `json:"result"`
	Error  string `json:"error,omitempty"`
}

// OK reports whether the skip succeeded.
func (s Skipped) OK() bool { return s.Result == Done || s.Result == Would }

// Skip moves streams forward as if the missing versions had been applied. Each stream is moved in its own
// transaction. Skip yields the result of the move for each stream.
func (b Box) Skip(ctx context.Context, o Skip, all []admin.StoredStream) iter.Seq2[Skipped, error] {
	return func(yield func(Skipped, error) bool) {
		held, err := b.heldRows(ctx, o, all)
		if err != nil {
			yield(Skipped{}, err)
			return
		}
		for _, s := range all {
			if ctx.Err() != nil {
				yield(Skipped{}, ctx.Err())
				return
			}
			if !yield(b.skip(ctx, o, s, held[keyOf(s)]), nil) {
				return
			}
		}
	}
}

// streamKey identifies a stream of a store in any generation.
type streamKey struct{ consumer, source, name string }

func keyOf(s admin.StoredStream) streamKey { return streamKey{s.Consumer, s.Source, s.Name} }

// mostPassed is the maximum number of skipped rows that a result names.
const mostPassed = 20

// heldRows returns the unfinished rows whose versions Skip would skip.
func (b Box) heldRows(ctx context.Context, o Skip, all []admin.StoredStream) (map[streamKey][]store.StoredRow, error) {
	held, streams := map[streamKey][]store.StoredRow{}, map[streamKey]admin.StoredStream{}
	for _, s := range all {
		streams[keyOf(s)] = s
	}
	if len(streams) == 0 {
		return held, nil
	}
	chosen := store.RowFilter{Consumer: o.Filter.Consumer, States: unfinishedStates()}
	if len(all) == 1 {
		if o.target(all[0]) <= all[0].Last {
			return held, nil
		}
		chosen = rowsOf(all[0], all[0].Last+1, o.target(all[0]))
		chosen.Limit = mostPassed
	}
	for r, err := range b.Rows(ctx, chosen) {
		if err != nil {
			return nil, err
		}
		if len(all) == 1 && len(held[keyOf(all[0])]) == mostPassed {
			break
		}
		key := streamKey{r.Key.Consumer, r.Key.Source, r.Stream}
		s, asked := streams[key]
		if asked && r.Version > s.Last && r.Version <= o.target(s) && len(held[key]) < mostPassed {
			held[key] = append(held[key], r)
		}
	}
	return held, nil
}

// target returns the version to which Skip moves a stream.
func (o Skip) target(s admin.StoredStream) int64 {
	if o.To == 0 {
		return max(s.First-1, 0)
	}
	return o.To
}

func (b Box) skip(ctx context.Context, o Skip, s admin.StoredStream, held []store.StoredRow) Skipped {
	done := Skipped{StreamView: NewStreamView(b.Store, s), To: o.target(s), Result: Would}
	for _, r := range held {
		done.Passed = append(done.Passed, r.Number)
	}
	if why := refusal(o, s, done.To, held); why != "" {
		done.Passed = nil
		done.Result, done.Error = Refused, why
		return done
	}
	if o.DryRun {
		return done
	}
	what := fmt.Sprintf("consumer %s, stream %s, version %d to %d: %s", s.Consumer, done.Name(), s.Last, done.To, o.Why)
	err := b.Streams.SkipTo(ctx, s, done.To, store.Act{Verb: "skip", Who: o.Who, Why: what})
	switch {
	case err == nil:
		done.Result = Done
	case errors.Is(err, semel.ErrChanged):
		done.Result, done.Error = Refused, "its version has changed meanwhile; run semel gaps ls and try again"
	default:
		done.Result, done.Error = Failed, errorText(err)
	}
	return done
}

// refusal returns why a stream cannot be moved to a version, or "" if the stream can be moved.
func refusal(o Skip, s admin.StoredStream, to int64, held []store.StoredRow) string {
	switch {
	case o.To == 0 && s.Blocked == 0:
		return fmt.Sprintf("nothing waits in it; it is at version %d", s.Last)
	case o.To == 0 && to <= s.Last:
		return fmt.Sprintf("nothing is missing before version %d, which is due", s.First)
	case to <= s.Last:
		return fmt.Sprintf("it is at version %d already", s.Last)
	case o.To == 0 && len(held) > 0:
		r := held[0]
		return fmt.Sprintf("version %d is not missing: row %d has it, which is %s; wait until that row takes effect, or give --to", r.Version, r.Number, admin.StateOf(r.State))
	}
	return ""
}
