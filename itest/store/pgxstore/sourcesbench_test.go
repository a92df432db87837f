package pgxstore

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/source"
)

// variedSource is a source of n messages. The messages name the given number of sources in turn.
type variedSource struct{ n, sources, next int }

func (s *variedSource) Lanes(o source.LaneObserver) { o.Given(source.Lane{ID: "a", Epoch: 1}) }
func (*variedSource) Info() source.Info             { return source.Info{} }

func (s *variedSource) Flow(source.Lane, bool)      {}
func (s *variedSource) Close(context.Context) error { return nil }

func (s *variedSource) Fetch(ctx context.Context, most source.Bound) (all []source.Delivery, err error) {
	for ; s.next < s.n && len(all) < most.Messages; s.next++ {
		m := &semel.Message{Attributes: semel.Attributes{ID: strconv.Itoa(s.next), Source: fmt.Sprintf("/shops/%d", s.next%s.sources)}, Body: []byte(strconv.Itoa(s.next))}
		all = append(all, source.Delivery{Message: m, Lane: source.Lane{ID: "a", Epoch: 1}, Before: source.Unknown})
	}
	if len(all) == 0 {
		<-ctx.Done()
	}
	return all, nil
}

func (s *variedSource) Settle(context.Context, []source.Settlement) ([]int, error) { return nil, nil }

// BenchmarkSources receives messages into the inbox and applies these messages, once from ten sources and once from as
// many sources as messages. SEMEL_BENCH_MESSAGES sets the number of messages; the default is 20,000.
func BenchmarkSources(b *testing.B) {
	n, err := strconv.Atoi(os.Getenv("SEMEL_BENCH_MESSAGES"))
	if err != nil {
		n = 20_000
	}
	pool := openPool(b, services.Postgres(b))
	for _, sources := range []int{10, n} {
		b.Run(strconv.Itoa(sources), func(b *testing.B) {
			for range b.N {
				h := newFixture(b, pool)
				applyInbox(b, h, &variedSource{n: n, sources: sources})
			}
		})
	}
}

// applyInbox runs a consumer with an inbox until all messages of its source are applied.
func applyInbox(b *testing.B, h *fixture, source *variedSource) {
	b.Helper()
	began := time.Now()
	c, err := consumer.New(h.Queued(), h.applyQueued, consumer.Config{
		Name: "billing", Source: source, Identity: identity.CloudEvents(), Strategy: consumer.StrategyInbox, AckOnReceipt: true,
		Inbox: consumer.InboxPolicy{Poll: 20 * time.Millisecond}, IdleExit: time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	if err := c.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	applied := int(c.Counts().Inbox.Applied)
	if applied != source.n {
		b.Fatalf("%d of %d were applied", applied, source.n)
	}
	b.ReportMetric(float64(applied)/(time.Since(began)-time.Second).Seconds(), "messages/s")
}
