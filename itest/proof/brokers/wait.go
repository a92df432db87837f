package brokers

import (
	"context"
	"fmt"
	"time"

	"github.com/semel-go/semel/itest/proof"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// patience is how long any one thing may take.
const patience = 90 * time.Second

// wait asks until it is so.
func (r *run) wait(ctx context.Context, what string, so func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := proof.Until(ctx, 50*time.Millisecond, func() (bool, error) { return so(), nil }); err != nil {
		return fmt.Errorf("not in time: %s: %w", what, err)
	}
	return nil
}

// moreEffects waits until messages that were published from now on are applied.
func (r *run) moreEffects(ctx context.Context, when string) error {
	published := r.feed.Acknowledged()
	before, err := r.effects(ctx)
	if err != nil {
		return err
	}
	const more = 300
	return r.wait(ctx, "messages are published and applied "+when, func() bool {
		now, err := r.effects(ctx)
		return err == nil && now >= before+more && r.feed.Acknowledged() >= published+more
	})
}

func (r *run) effects(ctx context.Context) (n int, err error) {
	err = r.db.QueryRowContext(ctx, `select count(*) from effects`).Scan(&n)
	return n, err
}

// coordinator is the number of the node that coordinates the group.
func (r *run) coordinator(ctx context.Context) (int, error) {
	node := -1
	err := r.wait(ctx, "the group has a coordinator", func() bool {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		found := r.kafka.Admin.FindGroupCoordinators(ctx, r.group)
		if c := found[r.group]; c.Err == nil {
			node = int(c.NodeID) - 1
		}
		return node >= 0
	})
	return node, err
}

// complete waits until every partition of the topic and of the groups' offsets
// is in sync on all three brokers.
func (r *run) complete(ctx context.Context) error {
	return r.wait(ctx, "all replicas are in sync", func() bool { return r.inSync(ctx) })
}

func (r *run) inSync(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(r.brokers.Brokers()...))
	if err != nil {
		return false
	}
	defer client.Close()
	request := kmsg.NewPtrMetadataRequest()
	for _, name := range []string{r.topic, "__consumer_offsets"} {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(name)
		request.Topics = append(request.Topics, t)
	}
	response, err := request.RequestWith(ctx, client)
	if err != nil || len(response.Topics) != 2 {
		return false
	}
	for _, topic := range response.Topics {
		for _, p := range topic.Partitions {
			if p.ErrorCode != 0 || len(p.ISR) != 3 {
				return false
			}
		}
	}
	return true
}
