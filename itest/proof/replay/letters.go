//go:build unix

package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel/itest/ledger"
)

// letter is one dead letter as `semel dead replay` tells of it.
type letter struct {
	Number             int64
	ID                 string
	Foretold, Happened string
}

// letters is what the command prints.
type letters struct{ Letters []letter }

// The fates of a letter, as the command calls them and as the proof sees them.
const (
	fateApplied  = "applied"
	fateSkipped  = "skipped as applied"
	fateConflict = "conflict"
	fateFailed   = "failed again"
	fateDoubled  = "doubled"
)

// view is what the database shows of the letters, beside what any command says.
type view struct {
	effects map[string]int
	states  map[int64]string
}

func (r *run) look(ctx context.Context) (v view, err error) {
	if v.effects, err = ledger.Effects(ctx, r.Activity.DB, "delivery"); err != nil {
		return v, err
	}
	v.states = map[int64]string{}
	rows, err := r.Activity.DB.QueryContext(ctx, `select number, state from semel_inbox`)
	if err != nil {
		return v, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var number int64
		var state string
		if err := rows.Scan(&number, &state); err != nil {
			return v, err
		}
		v.states[number] = state
	}
	return v, rows.Err()
}

// became is what became of a letter between two views.
func became(l letter, before, after view) string {
	was, is, state := before.effects[l.ID], after.effects[l.ID], after.states[l.Number]
	switch {
	case is > 1:
		return fateDoubled
	case was == 0 && is == 1 && state == "COMPLETED":
		return fateApplied
	case was == 1 && state == "COMPLETED":
		return fateSkipped
	case state == "DEAD_LETTERED" && was == is && is == 1:
		return fateConflict
	}
	return fateFailed
}

// tally is how many letters have each fate, in words that can be compared.
func tally(all []letter, fate func(letter) string) string {
	counts := map[string]int{}
	for _, l := range all {
		counts[fate(l)]++
	}
	var words []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%d %s", counts[name], name))
	}
	return strings.Join(words, ", ")
}

// mend takes a cause away, unless it is planted that nobody does.
func (r *run) mend(ctx context.Context, c cause) error {
	if r.Plant == "unmended" {
		return nil
	}
	_, err := r.Activity.DB.ExecContext(ctx, mends[c])
	return err
}
