package consumer_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/reasonname"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

func TestTheDispositionOfAMessage(t *testing.T) {
	bubble(t, "case_12_applied_duplicate_conflict_busy_and_what_is_set_aside_are_told_apart", func(t *testing.T) {
		store := memstore.New()
		c := config(nil)
		c.Filter = consumer.Filter{Headers: map[string][]string{"region": {"eu"}}}
		running := mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			switch m.Identity.ID {
			case "discard":
				return semel.Discard("old")
			case "fails":
				return errTest
			}
			return add(ctx, tx, m)
		}, c)
		ours := func(id, body string) *semel.Message {
			m := message(id, body)
			m.Headers = append(m.Headers, semel.Header{Name: "region", Value: []byte("eu")})
			return m
		}
		// Another process has started this message and does not finish the message.
		other := mustNew(t, store, slow(consumer.Defaults().Timeout/2), c)
		under := make(chan error, 1)
		go func() { _, err := other.Process(t.Context(), ours("busy", "{}")); under <- err }()
		synctest.Wait()
		for _, step := range []struct {
			message *semel.Message
			want    consumer.Disposition
		}{
			{ours("1", "{}"), consumer.Disposition{Kind: semel.Ack, Ending: source.EndApplied}},
			{ours("1", "{}"), consumer.Disposition{Kind: semel.Ack, Ending: source.EndDuplicate}},
			{ours("1", "[]"), consumer.Disposition{Kind: semel.Ack, Ending: source.EndConflict}},
			{ours("", "{}"), consumer.Disposition{Kind: semel.Ack, Ending: source.EndParked, Reason: semel.ReasonNoIdentity}},
			{ours("discard", "{}"), consumer.Disposition{Kind: semel.Ack, Ending: source.EndDiscarded, Reason: "old"}},
			{message("2", "{}"), consumer.Disposition{Kind: semel.Ack, Ending: source.EndSkipped, Reason: reasonname.Filtered}},
			{ours("fails", "{}"), consumer.Disposition{Kind: semel.Nack, Charged: true}},
			{ours("busy", "{}"), consumer.Disposition{Kind: semel.Nack, Reason: reasonname.Busy}},
		} {
			got, err := running.Process(t.Context(), step.message)
			if (got.After > 0) != (step.want.Kind == semel.Nack) {
				t.Errorf("%v waits %v", step.want.Kind, got.After)
			}
			if got.After = 0; err != nil || got != step.want {
				t.Errorf("%+v, %v; want %+v", got, err, step.want)
			}
		}
		if err := <-under; err != nil {
			t.Error(err)
		}
		closed(t, running)
		closed(t, other)
	})
}
