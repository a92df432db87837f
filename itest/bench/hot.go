package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/sourcetest"
)

// Hot has the conditions of a measurement with hot keys. With hot keys, handlers are slow, and all messages are in one
// partition.
type Hot struct {
	Keys, Workers, Messages int
	// Weight is the exponent of Zipf's law.
	Weight  float64
	Handler time.Duration
}

// HotRow is the result for hot keys. For each round and each kind of lanes, a HotRow has a fraction: the lower bound of
// the duration divided by the measured duration. The lower bound is the time that the handlers of the most frequent key
// take one after the other.
type HotRow struct {
	Hot
	Bound      time.Duration
	Key, Lanes []float64
}

// MeasureHot measures lanes by key and lanes by partition, alternately.
func (w *World) MeasureHot(ctx context.Context, h Hot, rounds int) (HotRow, error) {
	d, err := w.database(ctx, 0)
	if err != nil {
		return HotRow{}, err
	}
	messages, hottest := h.makeMessages()
	r := HotRow{Hot: h, Bound: time.Duration(hottest) * h.Handler}
	for range rounds {
		for _, lanes := range []consumer.LaneMode{consumer.LanesKey, consumer.LanesPartition} {
			if err := d.reset(ctx); err != nil {
				return r, err
			}
			part := messages
			if lanes == consumer.LanesPartition { // with one handler at a time, a tenth of the messages is enough
				part = messages[:len(messages)/10]
			}
			took, err := d.runHot(ctx, h, lanes, part)
			if err != nil {
				return r, err
			}
			bound := r.Bound.Seconds() * float64(len(part)) / float64(len(messages))
			if lanes == consumer.LanesKey {
				r.Key = append(r.Key, bound/took.Seconds())
			} else {
				r.Lanes = append(r.Lanes, bound/took.Seconds())
			}
		}
	}
	return r, nil
}

// makeMessages returns messages whose keys are distributed by Zipf's law. The result hottest is the number of messages
// with the most frequent key.
func (h Hot) makeMessages() (all []*semel.Message, hottest int) {
	random := rand.New(rand.NewPCG(3, 4))
	keys, counts := rand.NewZipf(random, h.Weight, 1, uint64(h.Keys-1)), map[uint64]int{}
	for n := range h.Messages {
		k := keys.Uint64()
		counts[k]++
		hottest = max(hottest, counts[k])
		all = append(all, &semel.Message{
			Headers: semel.Headers{{Name: "id", Value: fmt.Appendf(nil, "m%d", n)}}, Key: strconv.AppendUint(nil, k, 10),
			Body: fmt.Appendf(nil, `{"account":%d,"amount":1}`, k), Origin: semel.Origin{Partition: -1, Offset: -1},
		})
	}
	return all, hottest
}

func (d *database) runHot(ctx context.Context, h Hot, lanes consumer.LaneMode, messages []*semel.Message) (time.Duration, error) {
	source := sourcetest.NewMemory(1)
	for _, m := range messages {
		if err := source.Publish(0, m); err != nil {
			return 0, err
		}
	}
	if err := source.End(); err != nil {
		return 0, err
	}
	insert := handleOne(Insert.singleStatement())
	run, err := newRun(consumer.New(d.pgx, func(ctx context.Context, tx pgx.Tx, m *semel.Message) error {
		select {
		case <-time.After(h.Handler):
		case <-ctx.Done():
		}
		return insert(ctx, tx, m)
	}, consumer.Config{Name: "bench", Source: source, Identity: identity.By("header:id"), Lanes: lanes, Workers: h.Workers, Logger: slog.New(slog.DiscardHandler)}, seeded))
	if err != nil {
		return 0, err
	}
	began := time.Now()
	counts, err := run(ctx)
	took := time.Since(began)
	if err == nil && int(counts.Applied) != len(messages) {
		err = fmt.Errorf("%d of %d messages ended: %+v", counts.Applied, len(messages), counts)
	}
	return took, err
}

// Write writes the result as Markdown.
func (r HotRow) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%d messages of one partition over %d keys with Zipf's weight %v, handlers of %v, %d workers: the hottest key's handlers take %v, one after the other.\n\n",
		r.Messages, r.Keys, r.Weight, r.Handler, r.Workers, r.Bound)
	fmt.Fprintf(&b, "| lanes | part of the hottest key's bound |\n| --- | --- |\n| key | %s |\n| partition | %s |\n", QuartilesOf(r.Key).Text("%.2f"), QuartilesOf(r.Lanes).Text("%.2f"))
	_, err := io.WriteString(w, b.String())
	return err
}
