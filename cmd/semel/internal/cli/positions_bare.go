package cli

import (
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/spf13/cobra"
)

// bareGroup says in flags what a policy says about a consumer of Kafka, for Go programs that
// have no policy.
type bareGroup struct {
	store, group    string
	brokers, topics []string
}

// add adds the flags.
func (b *bareGroup) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&b.store, "store", "", "a database without a policy, as postgres://… or sqlite:FILE; with --consumer, --brokers and --topics")
	flags.StringSliceVar(&b.brokers, "brokers", nil, "with --store: brokers of Kafka, as host:port")
	flags.StringSliceVar(&b.topics, "topics", nil, "with --store: the topics that the consumer reads")
	flags.StringVar(&b.group, "group", "", "with --store: the consumer group, if it is not the consumer's name")
	refuseEmpty(cmd, "store", "brokers", "topics", "group")
}

// load is the policy, or with --store what the flags say.
func (b *bareGroup) load(c *common) (*policy.Policy, error) {
	if b.store == "" {
		if len(b.brokers) > 0 || len(b.topics) > 0 || b.group != "" {
			return nil, usage("--brokers, --topics and --group need --store; a policy says them for its consumers")
		}
		return c.load()
	}
	switch {
	case !policy.IsPlace(b.store):
		return nil, usage("--store is a database here, as postgres://… or sqlite:FILE; for a store of a policy leave it out and use --consumer")
	case c.consumer == "" || len(b.brokers) == 0 || len(b.topics) == 0:
		return nil, usage("--store needs --consumer, --brokers and --topics, which no policy says")
	}
	p, _, err := c.loadFor(b.store)
	if err != nil {
		return nil, err
	}
	p.AddReader(c.consumer, &policy.Kafka{Brokers: b.brokers, Topics: b.topics, Group: b.group})
	return p, nil
}

// words are the flags that choose the same consumer in another command. The place of the
// database is left out, because it may hold a password.
func (b *bareGroup) words() []string {
	words := []string{"--store", "DATABASE"}
	for _, broker := range b.brokers {
		words = append(words, "--brokers", broker)
	}
	for _, topic := range b.topics {
		words = append(words, "--topics", topic)
	}
	if b.group != "" {
		words = append(words, "--group", b.group)
	}
	return words
}
