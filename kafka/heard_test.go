package kafka

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
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
	t.Run("law_13_an_answer_grows_old", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var h lastAnswer
			ended, end := context.WithCancel(t.Context())
			end()
			if err := h.cancelled(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("before the first answer: %v", err)
			}
			h.OnBrokerE2E(kgo.BrokerMetadata{}, 1, kgo.BrokerE2E{})
			if err := h.cancelled(ended); err != nil {
				t.Errorf("after an answer: %v", err)
			}
			<-time.After(silence + 1)
			h.OnBrokerE2E(kgo.BrokerMetadata{}, 1, kgo.BrokerE2E{ReadErr: errors.New("cut")})
			if err := h.cancelled(ended); !errors.Is(err, context.Canceled) {
				t.Errorf("%v after the answer: %v", silence+1, err)
			}
		})
	})
}
