//go:build unix

package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/itest/proof/ledger"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// counts are the numbers in a replay's output.
type counts struct {
	Read      int64 `json:"read"`
	Applied   int64 `json:"applied"`
	Skipped   int64 `json:"skipped"`
	Conflicts int64 `json:"conflicts"`
}

func (c counts) String() string {
	return fmt.Sprintf("%d read, %d applied, %d skipped, %d conflicts", c.Read, c.Applied, c.Skipped, c.Conflicts)
}

// forget deletes transfers with their markers, and the rows of conflicts. fold computes the balances again.
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

// chosen returns the ids of the transfers that `which` selects among those published before this percentage.
func (p Proof) chosen(percent int, which func(transfer int) bool) (ids []string) {
	for i := range p.part(percent) {
		if which(i) {
			ids = append(ids, id(i))
		}
	}
	return ids
}

// damage deletes what would be missing after an older backup was restored: some transfers and conflicts, with
// their markers, rows and changes.
func (r *run) damage(ctx context.Context) (lost []string, err error) {
	lost = r.chosen(untilRebuild, forgotten)
	unknown := r.chosen(untilRebuild, func(transfer int) bool { return contradicted(transfer) && transfer%600 == 40 })
	return lost, r.remove(ctx, forget, lost, unknown)
}

// remove runs a query that deletes transfers and rows, and computes the balances again. The query returns the
// numbers of deleted markers, effects and rows. Without others, the deleted rows must be those of the
// transfers.
func (r *run) remove(ctx context.Context, query string, lost, others []string) error {
	tx, err := r.Activity.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	args, want := []any{lost}, len(lost)
	if others != nil {
		args, want = append(args, others), len(others)
	}
	var marks, gone, rows int
	if err := tx.QueryRowContext(ctx, query, args...).Scan(&marks, &gone, &rows); err != nil {
		return err
	}
	if marks != len(lost) || gone != len(lost) || rows != want {
		return fmt.Errorf("%d markers and %d effects of %d transfers could be removed, and %d of %d rows", marks, gone, len(lost), rows, want)
	}
	for _, text := range []string{unfold, fold} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return err
		}
	}
	r.Say("the database has lost %d transfers and %d rows", len(lost), want)
	return tx.Commit()
}

// again replays the whole topic. Exactly the lost messages must take effect. again kills the command while it
// runs.
func (r *run) again(ctx context.Context) error {
	lost, err := r.damage(ctx)
	if err != nil {
		return err
	}
	var plan struct{ Would counts }
	if err := r.semel(ctx, &plan, []int{0}, "replay", "plan", group); err != nil {
		return err
	}
	before, contradictedBefore, err := r.known(ctx)
	if err != nil {
		return err
	}
	if err := r.readAgain(ctx, lost); err != nil {
		return err
	}
	after, contradictedAfter, err := r.known(ctx)
	if err != nil {
		return err
	}
	happened := counts{Read: int64(r.ledger.Records), Conflicts: contradictedAfter - contradictedBefore}
	for id, n := range after {
		happened.Applied += int64(n - before[id])
		if n == 1 && before[id] == 0 && slices.Contains(lost, id) {
			r.ledger.Recovered++
		}
	}
	happened.Skipped = happened.Read - happened.Applied - happened.Conflicts
	r.forecast("what was lost", plan.Would, happened)
	return r.discard(ctx)
}

// known returns the number of effects of each transfer, and the number of known conflicts.
func (r *run) known(ctx context.Context) (effects map[string]int, others int64, err error) {
	if effects, err = ledger.Effects(ctx, r.Activity.DB, "delivery"); err != nil {
		return nil, 0, err
	}
	return effects, others, r.Activity.DB.QueryRowContext(ctx, conflicts).Scan(&others)
}

// readAgain starts a replay, kills it as often as configured, and resumes it each time.
func (r *run) readAgain(ctx context.Context, lost []string) error {
	begin := []string{"replay", "start", group, "--because", "a backup was restored", "--as", "proof"}
	for n := range r.Shots.Again {
		o, err := r.call("again", begin...)
		if err != nil {
			return err
		}
		if err := r.counted(ctx, o, (n+1)*len(lost)/(r.Shots.Again+2), `select count(*) from effects where delivery = any($1)`, lost); err != nil {
			return err
		}
		if err := r.shot(o); err != nil {
			return err
		}
		if _, begin, err = r.resuming(ctx, "again"); err != nil {
			return err
		}
	}
	o, err := r.call("again", begin...)
	if err != nil {
		return err
	}
	return r.ended(ctx, o, 0)
}

// resuming waits until no process runs the newest replay. It returns the number of the replay and the
// arguments that resume it.
func (r *run) resuming(ctx context.Context, kind string) (int64, []string, error) {
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
		if err := r.semel(ctx, &status, []int{0}, noun, "status", "--limit", "1"); err != nil {
			return 0, nil, err
		}
		if len(status.Replays) != 1 || status.Replays[0].Kind != kind {
			return 0, nil, fmt.Errorf("the newest replay is not of kind %s: %+v", kind, status.Replays)
		}
		if one := status.Replays[0]; !one.Run {
			return one.Number, []string{noun, "start", group, "--resume", fmt.Sprint(one.Number), "--because", "it was killed", "--as", "proof"}, nil
		}
		processes.Pause(ctx, 500*time.Millisecond)
		if err := r.Tend(); err != nil {
			return 0, nil, err
		}
	}
}
