package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
)

func TestAFetchThatIsCancelledSaysWhetherABrokerAnswers(t *testing.T) {
	t.Run("law_13_a_source_without_a_broker_does_not_say_that_it_works", func(t *testing.T) {
		c := cluster(t, kfake.SeedTopics(1, "orders"))
		r := read(t, Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing"})
		c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if got, err := r.Fetch(ctx, wide); len(got) > 0 || err == nil {
			t.Errorf("%d deliveries, %v", len(got), err)
		}
	})
}
