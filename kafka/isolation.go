package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// isolation is which records of transactions are read.
func (c *Config) isolation() kgo.Opt {
	if c.ReadUncommitted {
		return kgo.FetchIsolationLevel(kgo.ReadUncommitted())
	}
	return kgo.FetchIsolationLevel(kgo.ReadCommitted())
}

// ends are where what is read of these topics ends now.
func (c *Config) ends(ctx context.Context, ask *kadm.Client, topics ...string) (kadm.ListedOffsets, error) {
	list := ask.ListCommittedOffsets
	if c.ReadUncommitted {
		list = ask.ListEndOffsets
	}
	ends, err := list(ctx, topics...)
	if err == nil {
		err = ends.Error()
	}
	return ends, err
}
