//go:build unix

package replay

import (
	"context"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// killMember kills a member, if possible in an open transaction, and restarts it.
func (r *run) killMember(ctx context.Context) {
	m, open := r.Catch(ctx, proof.Hunt{Opening: processes.Marking(), Most: 5 * time.Second, Random: r.random})
	r.Kill(m, open)
	m.Start()
}

// fail publishes the first part of the transfers, and kills members at the same time.
func (r *run) fail(ctx context.Context) {
	r.publish(ctx, 0, untilRepair, r.Publish)
	var events proof.Schedule
	events.Spread(0.1, 0.6, r.Kills, r.killMember)
	r.Spread(ctx, events, r.Publish)
	r.waitPublished(ctx)
}
