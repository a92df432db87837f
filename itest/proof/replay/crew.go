//go:build unix

package replay

import (
	"context"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// patiently waits until the condition holds. After patience it returns an error with the text `otherwise`.
func (r *run) patiently(ctx context.Context, otherwise string, so func(context.Context) (bool, error)) error {
	is, err := r.Patiently(ctx, patience, 200*time.Millisecond, so)
	if err == nil && !is {
		r.Say("after %v %s", patience, otherwise)
	}
	return err
}

// killMember kills a member, if possible in an open transaction, and restarts it.
func (r *run) killMember(ctx context.Context) error {
	m, open, err := r.Catch(ctx, proof.Hunt{Opening: processes.Marking(), Most: 5 * time.Second, Random: r.random})
	if err != nil {
		return err
	}
	if err := r.Kill(m, open); err != nil {
		return err
	}
	return m.Start()
}

// fail publishes the first part of the transfers, and kills members meanwhile.
func (r *run) fail(ctx context.Context) error {
	if err := r.publish(ctx, 0, untilRepair, r.Publish); err != nil {
		return err
	}
	var events proof.Schedule
	events.Spread(0.1, 0.6, r.Kills, r.killMember)
	if err := r.Spread(ctx, events, r.Publish); err != nil {
		return err
	}
	return r.published(ctx)
}
