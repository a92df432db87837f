//go:build unix

package replay

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/itest/proof/ledger"
)

// rebuild rebuilds the projection beside the active projection, which the new one then replaces. Meanwhile
// messages arrive, and the proof kills members and the command that rebuilds.
func (r *run) rebuild(ctx context.Context) error {
	if err := r.publish(ctx, untilRebuild, untilSwitch, r.Publish/2); err != nil {
		return err
	}
	builder, number, err := r.build(ctx)
	if err != nil {
		return err
	}
	if r.Plant != "by-hand" {
		if err := r.caughtUp(ctx, builder); err != nil {
			return err
		}
	}
	if err := r.killMembers(ctx); err != nil {
		return err
	}
	if err := r.published(ctx); err != nil {
		return err
	}
	// The last part is published so slowly that the switch happens meanwhile, even on a busy machine.
	if err := r.publish(ctx, untilSwitch, untilEnd, max(r.Publish, 20*time.Second)); err != nil {
		return err
	}
	if err := r.change(ctx, number, builder); err != nil {
		return err
	}
	published := r.Feed.Acknowledged()
	r.active = 1
	r.Say("generation 1 is switched to while messages come")
	if err := r.published(ctx); err != nil {
		return err
	}
	r.ledger.Afterwards = int(r.Feed.Acknowledged() - published)
	return r.discard(ctx)
}

// change makes the new generation active. The planted fault does this with an UPDATE of the tables instead of
// the command.
func (r *run) change(ctx context.Context, number int64, builder *operator) error {
	if r.Plant == "by-hand" {
		_, err := r.Activity.DB.ExecContext(ctx, `update semel_generation_states set state = 3 where generation = 0;
update semel_generation_states set state = 2 where generation = 1`)
		return err
	}
	var told any
	args := []string{"rebuild", "switch", fmt.Sprint(number), "--consumer", group, "--allow-parked", "--because", "it is built", "--as", "proof"}
	if err := r.semel(ctx, &told, []int{0}, args...); err != nil {
		return err
	}
	return r.ended(ctx, builder, 0)
}

// build starts the command that rebuilds, kills it as often as configured, and resumes it. It returns the
// command that is running at the end.
func (r *run) build(ctx context.Context) (o *operator, number int64, err error) {
	begin := []string{"rebuild", "start", group, "--because", "another projection", "--as", "proof"}
	for n := 0; ; n++ {
		if o, err = r.call("builder", begin...); err != nil || n == r.Shots.Rebuild {
			return o, number, err
		}
		least := (n + 1) * r.part(untilRebuild) / (r.Shots.Rebuild + 2)
		if err := r.counted(ctx, o, least, `select count(*) from effects where generation = 1`); err != nil {
			return nil, 0, err
		}
		if err := r.shot(o); err != nil || r.Plant == "by-hand" { // with this fault nobody resumes the rebuild
			return nil, 0, err
		}
		if number, begin, err = r.resuming(ctx, "rebuild"); err != nil {
			return nil, 0, err
		}
	}
}

// caughtUp waits until the new projection contains everything that the active projection contains, except the
// newest messages.
func (r *run) caughtUp(ctx context.Context, builder *operator) error {
	return r.patiently(ctx, "the new projection has not caught up", func(ctx context.Context) (bool, error) {
		if alive, err := builder.Running(); !alive || err != nil {
			return true, err // if the rebuild has ended, the switch reports why
		}
		live, built := 0, 0
		err := r.Activity.DB.QueryRowContext(ctx, `select count(*) filter (where generation = 0), count(*) filter (where generation = 1) from effects`).Scan(&live, &built)
		return err == nil && built >= live-live/50, nil
	})
}

// generations returns the effects of both generations, indexed by generation.
func (r *run) generations(ctx context.Context) (all [2]map[string]int, err error) {
	effects, err := ledger.Effects(ctx, r.Activity.DB, "delivery || '@' || generation")
	if err != nil {
		return all, err
	}
	all = [2]map[string]int{{}, {}}
	for name, n := range effects {
		delivery, generation, _ := strings.Cut(name, "@")
		switch generation {
		case "0":
			all[0][delivery] = n
		case "1":
			all[1][delivery] = n
		default:
			return all, fmt.Errorf("transfer %s has an effect in generation %s, which was never built", delivery, generation)
		}
	}
	return all, nil
}

// folded is the query that computes the projection at the switch: from the transfers of the new generation
// that the active generation had too. Its result must equal the active projection.
const folded = `select format('%s %s %s %s %s', account, sum(cents), count(*), sum(cents * right(delivery, 6)::bigint), max(delivery collate "C"))
from effects e where generation = 1 and exists (select from effects o where o.delivery = e.delivery and o.generation = 0)
group by account order by account collate "C"`
