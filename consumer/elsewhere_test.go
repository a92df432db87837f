package consumer_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
)

// at returns a message with an offset in the broker.
func at(id string, offset int) *semel.Message {
	m := message(id, fmt.Sprintf(`{"n": %d}`, offset))
	m.Topic, m.Origin = "orders", semel.Origin{Partition: 2, Offset: int64(offset)}
	return m
}

func TestDuplicatesThatCannotBeRedeliveriesAreWarnedAboutOnce(t *testing.T) {
	many := func(n int, one func(i int) *semel.Message) (all []*semel.Message) {
		for i := range n {
			all = append(all, one(i))
		}
		return all
	}
	byKey := many(5000, func(i int) *semel.Message { return at(fmt.Sprint("order ", i%5), i) })
	for name, c := range map[string]struct {
		messages []*semel.Message
		before   []*semel.Message // applied by another process
		set      func(*consumer.Config)
		want     int
	}{
		"different messages share an identity": {messages: byKey, want: 1},
		"received before they are applied": {messages: byKey, want: 1,
			set: func(c *consumer.Config) { c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true }},
		"fewer than a thousand":       {messages: byKey[:999]},
		"producers send all twice":    {messages: many(6000, func(i int) *semel.Message { return at(fmt.Sprint(i/2), i) })},
		"the broker delivers again":   {messages: many(6000, func(i int) *semel.Message { return at(fmt.Sprint(i%1000), i%1000) })},
		"offsets were set back":       {messages: many(3000, func(i int) *semel.Message { return at(fmt.Sprint(i), i) }), before: many(3000, func(i int) *semel.Message { return at(fmt.Sprint(i), i) })},
		"messages without an offset":  {messages: many(5000, func(i int) *semel.Message { return message(fmt.Sprint(i%5), "{}") })},
		"a replay of what was copied": {messages: byKey, set: func(c *consumer.Config) { c.Replay = &semel.Replay{ID: 1} }},
	} {
		bubble(t, name, func(t *testing.T) {
			var log bytes.Buffer
			store := memstore.New()
			run := func(messages []*semel.Message) {
				config := config(newListSource(messages...))
				config.Fingerprint, config.Logger = identity.FingerprintNone(), slog.New(slog.NewTextHandler(&log, nil))
				if c.set != nil {
					c.set(&config)
				}
				runs(t, store, add, config)
			}
			run(c.before)
			run(c.messages)
			if got := strings.Count(log.String(), "most messages count as duplicates"); got != c.want {
				t.Errorf("said %d times, want %d:\n%.2000s", got, c.want, log.String())
			}
			if c.want > 0 && !strings.Contains(log.String(), "messages=1000 duplicates=99") {
				t.Errorf("without the counts: %.2000s", log.String())
			}
		})
	}
}
