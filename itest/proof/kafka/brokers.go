//go:build unix

package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/semel-go/semel/itest/proof"
)

// broker returns the number of the broker to kill or freeze. With three brokers, the method waits until all replicas
// are in sync, and returns the group's coordinator.
func (r *run) broker(ctx context.Context) (node int) {
	if r.Brokers == 1 {
		return 0
	}
	r.waitPatiently(ctx, "all replicas are in sync, and the group has a coordinator", func(ctx context.Context) bool {
		if !r.inSync(ctx) {
			return false
		}
		c := r.Kafka.Admin.FindGroupCoordinators(ctx, group)[group]
		node = int(c.NodeID) - 1
		return c.Err == nil && node >= 0
	})
	return node
}

// inSync reports whether all brokers have in-sync replicas of every partition of the topic and of
// __consumer_offsets.
func (r *run) inSync(ctx context.Context) bool {
	found, err := r.Kafka.Admin.ListTopicsWithInternal(ctx, topic, "__consumer_offsets")
	if err != nil || len(found) != 2 {
		return false
	}
	complete := true
	found.EachPartition(func(p kadm.PartitionDetail) { complete = complete && p.Err == nil && len(p.ISR) == r.Brokers })
	return complete
}

// moreEffects waits for 300 further effects. The parameter when names the situation in the error.
func (r *run) moreEffects(ctx context.Context, when string) {
	const more = 300
	published, before := r.Feed.Acknowledged(), r.countEffects()
	r.waitPatiently(ctx, "messages are published and applied "+when, func(context.Context) bool {
		return r.Feed.Acknowledged() >= published+more && r.countEffects() >= before+more
	})
}

// waitPatiently waits until condition returns true, and fails if the wait takes too long.
func (r *run) waitPatiently(ctx context.Context, what string, condition func(context.Context) bool) {
	is := r.Patiently(ctx, patience, 500*time.Millisecond, func(ctx context.Context) bool {
		most, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return condition(most)
	})
	if !is {
		proof.Check(fmt.Errorf("not within %v: %s", patience, what))
	}
}
