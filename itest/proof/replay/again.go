//go:build unix

package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// counts has the numbers in a replay's output.
type counts struct {
	Read      int64 `json:"read"`
	Applied   int64 `json:"applied"`
	Skipped   int64 `json:"skipped"`
	Conflicts int64 `json:"conflicts"`
}

func (c counts) String() string {
	return fmt.Sprintf("%d read, %d applied, %d skipped, %d conflicts", c.Read, c.Applied, c.Skipped, c.Conflicts)
}

// The statement forget deletes transfers with their markers, and the rows of conflicts. The statement fold computes the
// balances again.
const (
	forget = `with lost as (select '\x00'::bytea || convert_to(unnest($1::text[]), 'UTF8') as id),
unknown as (select '\x00'::bytea || convert_to(unnest($2::text[]), 'UTF8') as id),
marks as (delete from semel_markers where id in (select id from lost) returning 1),
rows as (delete from semel_inbox where id in (select id from unknown) and conflict <> '' returning 1),
gone as (delete from effects where delivery = any($1) returning 1)
select (select count(*) from marks), (select count(*) from gone), (select count(*) from rows)`
	unfold = `delete from balances`
	fold   = `insert into balances (generation, account, cents, transfers, digest, last)
select generation, account, sum(cents), count(*), sum(cents * right(delivery, 6)::bigint), max(delivery collate "C") from effects group by 1, 2`
	conflicts = `select count(*) from semel_inbox where conflict <> ''`
)

// chooseIDs returns the ids of the transfers for which the function selects returns true. chooseIDs considers only the
// first transfers; the parameter percent is their percentage of all transfers.
func (p Proof) chooseIDs(percent int, selects func(transfer int) bool) (ids []string) {
	for i := range p.firstAfter(percent) {
		if selects(i) {
			ids = append(ids, id(i))
		}
	}
	return ids
}

// damage deletes data that would be missing after the restore of an older backup: some transfers and conflicts, with
// their markers, rows and changes.
func (r *run) damage(ctx context.Context) (lost []string) {
	lost = r.chooseIDs(untilRebuild, isForgotten)
	unknown := r.chooseIDs(untilRebuild, func(transfer int) bool { return isContradicted(transfer) && transfer%600 == 40 })
	r.remove(ctx, forget, lost, unknown)
	return lost
}

// remove runs a query that deletes transfers and rows, and computes the balances again. The query returns the numbers
// of deleted markers, effects and rows. If others is empty, only rows of the transfers may be deleted.
func (r *run) remove(ctx context.Context, query string, lost, others []string) {
	tx := proof.Must(r.Activity.DB.BeginTx(ctx, nil))
	defer func() { _ = tx.Rollback() }()
	args, want := []any{lost}, len(lost)
	if others != nil {
		args, want = append(args, others), len(others)
	}
	var marks, gone, rows int
	proof.Check(tx.QueryRowContext(ctx, query, args...).Scan(&marks, &gone, &rows))
	if marks != len(lost) || gone != len(lost) || rows != want {
		proof.Check(fmt.Errorf("%d markers and %d effects of %d transfers could be removed, and %d of %d rows", marks, gone, len(lost), rows, want))
	}
	proof.Must(tx.ExecContext(ctx, unfold))
	proof.Must(tx.ExecContext(ctx, fold))
	r.Say("the database has lost %d transfers and %d rows", len(lost), want)
	proof.Check(tx.Commit())
}

// replayAll replays the whole topic, and kills the command while it runs. Exactly the lost messages must take
// effect.
func (r *run) replayAll(ctx context.Context) {
	lost := r.damage(ctx)
	var plan struct{ Would counts }
	r.semel(ctx, &plan, []int{0}, "replay", "plan", group)
	before, contradictedBefore := r.readEffects(ctx)
	r.readAgain(ctx, lost)
	after, contradictedAfter := r.readEffects(ctx)
	happened := counts{Read: int64(r.ledger.Records), Conflicts: contradictedAfter - contradictedBefore}
	for id, n := range after {
		happened.Applied += int64(n - before[id])
		if n == 1 && before[id] == 0 && slices.Contains(lost, id) {
			r.ledger.Recovered++
		}
	}
	happened.Skipped = happened.Read - happened.Applied - happened.Conflicts
	r.forecast("what was lost", plan.Would, happened)
	r.discard(ctx)
}

// readEffects returns the number of effects of each transfer, and the number of known conflicts.
func (r *run) readEffects(ctx context.Context) (effects map[string]int, others int64) {
	return proof.Must(ledger.Effects(ctx, r.Activity.DB, "delivery")), int64(r.Count(ctx, conflicts))
}

// readAgain starts a replay, kills it as often as configured, and resumes it each time.
func (r *run) readAgain(ctx context.Context, lost []string) {
	begin := []string{"replay", "start", group, "--because", "a backup was restored", "--as", "proof"}
	for n := range r.Shots.Again {
		o := r.call("again", begin...)
		r.waitCount(ctx, o, (n+1)*len(lost)/(r.Shots.Again+2), `select count(*) from effects where delivery = any($1)`, lost)
		r.killCommand(o)
		_, begin = r.waitResumed(ctx, "again")
	}
	r.waitEnded(ctx, r.call("again", begin...), 0)
}

// waitResumed waits until no process runs the newest replay. The results are the number of the replay and the
// arguments that resume the replay.
func (r *run) waitResumed(ctx context.Context, kind string) (int64, []string) {
	for {
		var status struct {
			Replays []struct {
				Number int64
				Kind   string
				Run    bool
			}
		}
		noun := "replay"
		if kind == "rebuild" {
			noun = kind
		}
		r.semel(ctx, &status, []int{0}, noun, "status", "--limit", "1")
		if len(status.Replays) != 1 || status.Replays[0].Kind != kind {
			proof.Check(fmt.Errorf("the newest replay is not of kind %s: %+v", kind, status.Replays))
		}
		if one := status.Replays[0]; !one.Run {
			return one.Number, []string{noun, "start", group, "--resume", fmt.Sprint(one.Number), "--because", "it was killed", "--as", "proof"}
		}
		processes.Pause(ctx, 500*time.Millisecond)
		r.Tend()
	}
}
