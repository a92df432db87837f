//go:build unix

package replay

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// letter is one dead letter in the JSON output of `semel messages retry`.
type letter struct {
	Number    int64
	ID        string
	Predicted string
	Happened  string `json:"result"`
}

// retryOutput is the JSON output of `semel messages retry`.
type retryOutput struct{ Rows, Results []letter }

// The results of a replayed dead letter, with the names that the command and the fault test use.
const (
	fateApplied  = "applied"
	fateSkipped  = "skipped as applied"
	fateConflict = "conflict"
	fateFailed   = "failed again"
	fateDoubled  = "doubled"
)

// view is the state of effects and dead letters in the database, read with SQL and not with a command.
type view struct {
	effects map[string]int
	states  map[int64]string
}

func (r *run) look(ctx context.Context) (v view) {
	v.effects = proof.Must(ledger.Effects(ctx, r.Activity.DB, "delivery"))
	v.states = map[int64]string{}
	number, state := int64(0), ""
	proof.Check(ledger.Each(ctx, r.Activity.DB, `select number, state from semel_inbox`, nil, []any{&number, &state}, func() { v.states[number] = state }))
	return v
}

// became returns what happened to a dead letter between two views.
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

// tally counts the dead letters by result and returns the counts as text, so that a caller can compare two tallies.
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

// mend repairs the cause of failures. With the fault "unmended", mend does nothing.
func (r *run) mend(ctx context.Context, c cause) {
	if r.Plant != "unmended" {
		r.Exec(ctx, mends[c])
	}
}

// SQL that deletes transfers with their markers, and the rows of their dead letters.
const lose = `with lost as (select '\x00'::bytea || convert_to(unnest($1::text[]), 'UTF8') as id),
marks as (delete from semel_markers where id in (select id from lost) returning 1),
rows as (delete from semel_inbox where id in (select id from lost) returning 1),
gone as (delete from effects where delivery = any($1) returning 1)
select (select count(*) from marks), (select count(*) from gone), (select count(*) from rows)`

// isRestored reports whether the store has lost the dead letter of a transfer while the dead-letter topic
// still has it.
func isRestored(transfer int) bool { return transfer%800 == 33 }

// fromTopic replays the dead letters that the store has lost, from the dead-letter topic. Dead letters that
// the store still has must not change.
func (r *run) fromTopic(ctx context.Context) {
	r.remove(ctx, lose, r.chooseIDs(untilRepair, isRestored), nil)
	args := []string{"messages", "retry", "--all", "--topic", dead, "--consumer", group, "--run"}
	var said retryOutput
	r.semel(ctx, &said, []int{0, 1}, append(slices.Clone(args), "--dry-run")...)
	before := r.look(ctx)
	r.semel(ctx, nil, []int{0, 1}, append(args, "--because", "a backup was restored", "--as", "proof")...)
	after := r.look(ctx)
	changed := map[string]int{}
	for id, n := range after.effects {
		if d := n - before.effects[id]; d != 0 {
			changed[id] = d
		}
	}
	foretold := map[string]int{}
	for _, l := range said.Results {
		if l.Predicted == fateApplied {
			foretold[l.ID]++
		}
	}
	r.ledger.FromTopic = len(changed)
	happened := fmt.Sprintf("%d applied of %d", len(changed), len(said.Results))
	if !maps.Equal(foretold, changed) {
		happened += fmt.Sprint(", and others: ", foretold, " and ", changed)
	}
	r.forecast("letters of the topic", fmt.Sprintf("%d applied of %d", len(foretold), len(said.Results)), happened)
}
