//go:build unix

package replay

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/proof/ledger"
)

// rebuild builds a second projection beside the active projection; the second projection then becomes active. At the
// same time messages arrive, and the fault test kills members and the command that rebuilds.
func (r *run) rebuild(ctx context.Context) {
	r.publish(ctx, untilRebuild, untilSwitch, r.Publish/2)
	builder, number := r.build(ctx)
	if r.Plant != "by-hand" {
		r.caughtUp(ctx, builder)
	}
	r.killMembers(ctx)
	r.waitPublished(ctx)
	// The last part is published so slowly that the switch happens during the publishing, even on a busy machine.
	r.publish(ctx, untilSwitch, untilEnd, max(r.Publish, 20*time.Second))
	r.change(ctx, number, builder)
	published := r.Feed.Acknowledged()
	r.active = 1
	r.Say("generation 1 is switched to while messages come")
	r.waitPublished(ctx)
	r.ledger.Afterwards = int(r.Feed.Acknowledged() - published)
	r.discard(ctx)
}

// change makes the new generation active. With the fault "by-hand", change updates the tables instead of running the
// command.
func (r *run) change(ctx context.Context, number int64, builder *operator) {
	if r.Plant == "by-hand" {
		r.Exec(ctx, `update semel_generation_states set state = 3 where generation = 0;
update semel_generation_states set state = 2 where generation = 1`)
		return
	}
	r.semel(ctx, nil, []int{0}, "rebuild", "switch", fmt.Sprint(number), "--consumer", group, "--allow-parked", "--because", "it is built", "--as", "proof")
	r.waitEnded(ctx, builder, 0)
}

// build starts the command that rebuilds, kills the command as often as configured, and resumes the rebuild each time.
// The result is the command that is running at the end.
func (r *run) build(ctx context.Context) (o *operator, number int64) {
	begin := []string{"rebuild", "start", group, "--because", "another projection", "--as", "proof"}
	for n := 0; ; n++ {
		if o = r.call("builder", begin...); n == r.Shots.Rebuild {
			return o, number
		}
		least := (n + 1) * r.firstAfter(untilRebuild) / (r.Shots.Rebuild + 2)
		r.waitCount(ctx, o, least, `select count(*) from effects where generation = 1`)
		if r.killCommand(o); r.Plant == "by-hand" { // with this fault, nobody resumes the rebuild
			return nil, 0
		}
		number, begin = r.waitResumed(ctx, "rebuild")
	}
}

// caughtUp waits until the new projection contains all messages of the active projection, except the newest messages.
func (r *run) caughtUp(ctx context.Context, builder *operator) {
	is := r.Patiently(ctx, patience, 200*time.Millisecond, func(ctx context.Context) bool {
		if !builder.isRunning() {
			return true // the command of the switch reports the reason
		}
		live, built := 0, 0
		err := r.Activity.DB.QueryRowContext(ctx, `select count(*) filter (where generation = 0), count(*) filter (where generation = 1) from effects`).Scan(&live, &built)
		return err == nil && built >= live-live/50
	})
	if !is {
		r.Say("after %v the new projection has not caught up", patience)
	}
}

// readGenerations returns the effects of both generations, indexed by generation.
func (r *run) readGenerations(ctx context.Context) (all [2]map[string]int) {
	effects := proof.Must(ledger.Effects(ctx, r.Activity.DB, "delivery || '@' || generation"))
	all = [2]map[string]int{{}, {}}
	for name, n := range effects {
		delivery, generation, _ := strings.Cut(name, "@")
		switch generation {
		case "0":
			all[0][delivery] = n
		case "1":
			all[1][delivery] = n
		default:
			proof.Check(fmt.Errorf("transfer %s has an effect in generation %s, which was never built", delivery, generation))
		}
	}
	return all
}

// The query that computes the projection at the switch, from the transfers that are in the new and in the active
// generation. The result of the query must equal the active projection.
const folded = `select format('%s %s %s %s %s', account, sum(cents), count(*), sum(cents * right(delivery, 6)::bigint), max(delivery collate "C"))
from effects e where generation = 1 and exists (select from effects o where o.delivery = e.delivery and o.generation = 0)
group by account order by account collate "C"`
