package kafka

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestOptionsOfTheClient(t *testing.T) {
	config := Config{Brokers: []string{"127.0.0.1:1"}, Topics: []string{"orders"}, Group: "billing"}
	t.Run("I6_those_that_break_a_guarantee_are_refused_by_name", func(t *testing.T) {
		group := kgo.ConsumerGroup("other")
		given := func(context.Context, *kgo.Client, map[string][]int32) {}
		for name, options := range map[string][]kgo.Opt{
			"DisableAutoCommit":       {group, kgo.ConsumeTopics("a"), kgo.DisableAutoCommit()},
			"AutoCommitMarks":         {group, kgo.ConsumeTopics("a"), kgo.AutoCommitMarks()},
			"ConsumerGroup":           {group, kgo.ConsumeTopics("a")},
			"InstanceID":              {kgo.InstanceID("i")},
			"OnPartitionsRevoked":     {kgo.OnPartitionsRevoked(given)},
			"BlockRebalanceOnPoll":    {kgo.BlockRebalanceOnPoll()},
			"ConsumeTopics":           {kgo.ConsumeTopics("a")},
			"ConsumeRegex":            {kgo.ConsumeRegex()},
			"ConsumeResetOffset":      {kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd())},
			"FetchIsolationLevel":     {kgo.FetchIsolationLevel(kgo.ReadCommitted())},
			"FetchMaxBytes":           {kgo.FetchMaxBytes(1 << 20)},
			"MaxDecompressBatchBytes": {kgo.MaxDecompressBatchBytes(1 << 20)},
			"RequiredAcks":            {kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite()},
			"DisableIdempotentWrite":  {kgo.DisableIdempotentWrite()},
			"TransactionalID":         {kgo.TransactionalID("t")},
			"AllowAutoTopicCreation":  {kgo.AllowAutoTopicCreation()},
			"SeedBrokers":             {kgo.SeedBrokers("10.0.0.1:9092")},
			"ClientID":                {kgo.ClientID("c")},
			"Rack":                    {kgo.Rack("r")},
			"DialTLSConfig":           {kgo.DialTLS()},
			"WithLogger":              {kgo.WithLogger(kgo.BasicLogger(nil, kgo.LogLevelNone, nil))},
		} {
			c := config
			c.Options = options
			_, err := New(c)
			if err == nil || !strings.Contains(err.Error(), "kafka: Options ") {
				t.Errorf("%s: %v", name, err)
			}
			if text := fmt.Sprint(err); len(options) == 1 && !strings.Contains(text, "Options holds "+name+", ") && !strings.Contains(text, "cannot be used") {
				t.Errorf("%s is told as %v", name, err)
			}
		}
	})
	t.Run("I6_others_are_used_and_so_are_client_id_and_rack", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0")
		config.ClientID, config.Rack, config.MaxFetch, config.MaxPartitionFetch = "me", "here", 3<<20, 2<<20
		config.Options = []kgo.Opt{kgo.RequestTimeoutOverhead(17 * time.Second), kgo.SoftwareNameAndVersion("mine", "1")}
		r := read(t, config)
		r.ack(r.take(1)...)
		for option, want := range map[any]any{
			"RequestTimeoutOverhead": 17 * time.Second, "ClientID": "me", "Rack": "here", "FetchMaxBytes": int32(3 << 20), "FetchMaxPartitionBytes": int32(2 << 20),
		} {
			if got := r.member.current().OptValue(option); got != want {
				t.Errorf("%v is %v, not %v", option, got, want)
			}
		}
		if got := r.brokers.client().OptValue("RequestTimeoutOverhead"); got != 17*time.Second {
			t.Errorf("the client that commits has %v", got)
		}
	})
}
