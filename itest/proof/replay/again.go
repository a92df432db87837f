//go:build unix

package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/itest/ledger"
	"github.com/semel-go/semel/itest/processes"
)

// counts are what a replay says of messages.
type counts struct {
	Read      int64 `json:"read"`
	Applied   int64 `json:"applied"`
	Skipped   int64 `json:"skipped"`
	Conflicts int64 `json:"conflicts"`
}

func (c counts) String() string {
	return fmt.Sprintf("%d read, %d applied, %d skipped, %d conflicts", c.Read, c.Applied, c.Skipped, c.Conflicts)
}

// forget removes transfers with their markers, fold adds the balances up anew.
const (
	forget = `with ids as (select unnest($1::text[]) as id),
marks as (delete from semel_markers where id in (select '\x00'::bytea || convert_to(id, 'UTF8') from ids)
    and scope in (select number from semel_scopes where consumer = convert_to('` + group + `', 'UTF8')) returning 1),
gone as (delete from effects where delivery in (select id from ids) returning 1)
select (select count(*) from marks), (select count(*) from gone)`
	unfold = `delete from balances`
	fold   = `insert into balances (generation, account, cents, transfers, digest, last)
select generation, account, sum(cents), count(*), sum(cents * right(delivery, 6)::bigint), max(delivery collate "C") from effects group by 1, 2`
)

// damage takes from the database what it would lack if a backup were restored that some
// transfers are not in: their markers, and what they have changed.
func (r *run) damage(ctx context.Context) (lost []string, err error) {
	for i := range r.part(untilRebuild) {
		if forgotten(i) {
			lost = append(lost, id(i))
		}
	}
	tx, err := r.Activity.DB.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	marks, gone := 0, 0
	if err := tx.QueryRowContext(ctx, forget, lost).Scan(&marks, &gone); err != nil {
		return nil, err
	}
	if marks != len(lost) || gone != len(lost) {
		return nil, fmt.Errorf("%d markers and %d effects of %d transfers could be removed", marks, gone, len(lost))
	}
	for _, text := range []string{unfold, fold} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return nil, err
		}
	}
	return lost, tx.Commit()
}

// again has everything read again that the topic holds, so that what was lost takes effect,
// and nothing else, and the command is killed in its middle.
func (r *run) again(ctx context.Context) error {
	lost, err := r.damage(ctx)
	if err != nil {
		return err
	}
	r.Say("the database has lost %d transfers", len(lost))
	var plan struct{ Counts counts }
	if err := r.semel(ctx, &plan, []int{0}, "replay", "plan", "--consumer", group); err != nil {
		return err
	}
	before, err := ledger.Effects(ctx, r.Activity.DB, "delivery")
	if err != nil {
		return err
	}
	if err := r.readAgain(ctx, lost); err != nil {
		return err
	}
	after, err := ledger.Effects(ctx, r.Activity.DB, "delivery")
	if err != nil {
		return err
	}
	var applied, back int
	for id, n := range after {
		if applied += n - before[id]; n == 1 && before[id] == 0 && slices.Contains(lost, id) {
			back++
		}
	}
	r.ledger.Recovered = back
	others := int64(r.others(untilRebuild))
	read := int64(r.ledger.Records)
	r.forecast("what was lost", plan.Counts, counts{read, int64(applied), read - int64(applied) - others, others})
	return nil
}

// others is how many other contents were published before so many of a hundred transfers.
func (p Proof) others(percent int) (n int) {
	for i := range p.part(percent) {
		if contradicted(i) {
			n++
		}
	}
	return n
}

// readAgain replays, is killed so often, and resumed.
func (r *run) readAgain(ctx context.Context, lost []string) error {
	begin := []string{"replay", "start", "--consumer", group, "--reason", "a backup was restored", "--as", "proof"}
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

// resuming waits until nobody runs the newest replay any more, and is its number and how it is
// resumed.
func (r *run) resuming(ctx context.Context, kind string) (int64, []string, error) {
	for {
		var status struct {
			Replays []struct {
				Number int64
				Kind   string
				Run    bool
			}
		}
		if err := r.semel(ctx, &status, []int{0}, "replay", "status", "--limit", "1"); err != nil {
			return 0, nil, err
		}
		if len(status.Replays) != 1 || status.Replays[0].Kind != kind {
			return 0, nil, fmt.Errorf("the newest replay is not of kind %s: %+v", kind, status.Replays)
		}
		if one := status.Replays[0]; !one.Run {
			return one.Number, []string{"replay", "start", "--consumer", group, "--resume", fmt.Sprint(one.Number), "--reason", "it was killed", "--as", "proof"}, nil
		}
		processes.Pause(ctx, 500*time.Millisecond)
		if err := r.Tend(); err != nil {
			return 0, nil, err
		}
	}
}
