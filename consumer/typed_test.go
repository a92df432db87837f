package consumer_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
)

// eventOf returns a message whose type is in the header event-type.
func eventOf(kind, id string) *semel.Message {
	return newTypedMessage("", id, semel.Header{Name: "event-type", Value: []byte(kind)})
}

func TestATypeIsReadWhereItIsSaidToBe(t *testing.T) {
	bubble(t, "a_handler_only_and_ByType_see_a_type_in_a_header", func(t *testing.T) {
		c := config(newListSource(eventOf("paid", "1"), eventOf("refunded", "2"), eventOf("mailed", "3"), newTypedMessage("paid", "4")))
		c.Type, c.Filter = "header:Event-Type", consumer.Filter{Types: []string{"paid", "refunded"}}
		seen := map[string]string{}
		counts := runs(t, memstore.New(), consumer.ByType(map[string]func(context.Context, *memstore.Tx, *semel.Message) error{
			"paid": func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
				seen[m.Identity.ID] = m.Type()
				return nil
			},
		}), c)
		if counts.Applied != 2 || counts.Skipped != 1 || counts.Parked != 1 || len(seen) != 2 || seen["1"] != "paid" || seen["4"] != "paid" {
			t.Errorf("%+v, %v", counts, seen)
		}
	})
	bubble(t, "in_the_body_and_in_the_row_of_what_is_parked", func(t *testing.T) {
		store := memstore.New()
		c := config(newListSource(message("1", `{"type": "paid"}`), message("2", `{"type": 7}`), message("3", `{}`), message("4", `{"type": ["paid"]}`), message("5", `{"type": "paid"`)))
		c.Type = "body:/type"
		counts := runs(t, store, func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
			return semel.Park("of type " + m.Type())
		}, c)
		if counts.Parked != 5 {
			t.Errorf("%+v", counts)
		}
		var all []string
		for _, r := range rows(t, store) {
			all = append(all, fmt.Sprintf("%q %s", r.Message.Type(), r.Reason))
		}
		const want = `"paid" of type paid, "7" of type 7, "" of type , "" malformed, "" malformed`
		if got := strings.Join(all, ", "); got != want {
			t.Error(got)
		}
	})
	bubble(t, "what_cannot_be_read_is_not_left_out_as_another_consumers", func(t *testing.T) {
		large := message("2", `{"type": "paid", "x": "`+strings.Repeat("x", 70<<10)+`"}`)
		c := config(newListSource(message("1", `{"type": "paid"`), large, message("3", `{"type": "other"}`)))
		c.Type, c.Filter, c.MaxBody = "body:/type", consumer.Filter{Types: []string{"paid"}}, 64<<10
		if counts := runs(t, memstore.New(), add, c); counts.Parked != 2 || counts.Skipped != 1 {
			t.Errorf("%+v", counts)
		}
	})
	bubble(t, "it_changes_neither_identity_nor_fingerprint", func(t *testing.T) {
		store := memstore.New()
		for _, kind := range []string{"", "header:event-type"} {
			c := config(newListSource(newTypedMessage("order", "1", semel.Header{Name: "event-type", Value: []byte("paid")})))
			c.Type, c.Identity, c.Fingerprint = kind, identity.By("type", "header:id"), identity.FingerprintOf("type", "header:id")
			if counts := runs(t, store, add, c); counts.Applied+counts.Duplicates != 1 || kind != "" && counts.Duplicates != 1 {
				t.Errorf("%q: %+v", kind, counts)
			}
		}
	})
	t.Run("what_each_message_has_of_its_own_is_no_type", func(t *testing.T) {
		for kind, says := range map[string]string{"offset": "another value in each message", "time": "another value", "hedder:x": "unknown selector"} {
			c := config(nil)
			c.Type = kind
			if _, err := consumer.New(memstore.New(), add, c); err == nil || !strings.Contains(err.Error(), "Type: ") || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", kind, err)
			}
		}
		c := config(nil)
		c.Type, c.Version = "header:event-type", &consumer.VersionPolicy{By: identity.Stream("type", "subject").At("body:/version"), Start: 1}
		if _, err := consumer.New(memstore.New(), add, c); err == nil || !strings.Contains(err.Error(), `name "header:event-type" in Version, too`) {
			t.Error(err)
		}
	})
}

func TestTypesThatNoMessageHasAreWarnedAboutOnce(t *testing.T) {
	const says = "types of messages are asked for, and no message has had one"
	asks := func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
		if m.Type() != "paid" {
			return semel.Discard("another type")
		}
		return nil
	}
	for name, c := range map[string]struct {
		messages int
		typed    int // index of the message with a type; -1 if none
		handle   func(context.Context, *memstore.Tx, *semel.Message) error
		set      func(*consumer.Config)
		want     int
	}{
		"a handler asks":                         {300, -1, asks, func(*consumer.Config) {}, 1},
		"nobody asks":                            {300, -1, add, func(*consumer.Config) {}, 0},
		"only asks":                              {300, -1, add, func(c *consumer.Config) { c.Filter.Types = []string{"paid"} }, 1},
		"a message of the first hundred has one": {300, 50, asks, func(*consumer.Config) {}, 0},
		"too few to know":                        {99, -1, asks, func(*consumer.Config) {}, 0},
		"the selector finds them":                {300, -1, asks, func(c *consumer.Config) { c.Type = "header:event-type" }, 0},
		"an inbox that keeps them":               {300, -1, add, func(c *consumer.Config) { c.Strategy, c.AckOnReceipt = consumer.StrategyInbox, true }, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			var log bytes.Buffer
			var all []*semel.Message
			for i := range c.messages {
				m := eventOf("paid", fmt.Sprint(i))
				if i == c.typed {
					m = newTypedMessage("paid", fmt.Sprint(i))
				}
				all = append(all, m)
			}
			config := config(newListSource(all...))
			config.Logger = slog.New(slog.NewTextHandler(&log, nil))
			c.set(&config)
			runs(t, memstore.New(), c.handle, config)
			if got := strings.Count(log.String(), says); got != c.want {
				t.Errorf("said %d times, want %d:\n%s", got, c.want, log.String())
			}
		})
	}
}
