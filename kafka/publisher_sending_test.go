package kafka

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/producer"
)

func TestWhatAPublisherToldIsNotRemembered(t *testing.T) {
	bubble(t, "law_11_and_whoever_publishes_again_writes_again", func(t *testing.T) {
		w := newWorld(t, 1)
		p, _ := w.publisher(nil)
		for range 2 {
			if err := p.Publish(t.Context(), paid("a")); err != nil {
				t.Fatal(err)
			}
		}
		_, anew := p.sendings.Begin(t.Context(), producer.Publication{Identity: paid("a").Identity, Topic: theTopic}, 0, time.Now())
		if all := w.ids(theTopic); strings.Join(all, " ") != "a a" || !anew {
			t.Errorf("the records are %v, and the last sending is remembered: %t", all, !anew)
		}
	})
}

func TestWhatWasTakenBackWasNotSent(t *testing.T) {
	t.Run("E3_though_others_were_sent_meanwhile", func(t *testing.T) {
		p, err := NewPublisher(quietly(PublisherConfig{Brokers: []string{"127.0.0.1:1"}, Topic: theTopic}))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		all := producer.NewSendings()
		s, _ := all.Begin(t.Context(), producer.Publication{}, p.produces.Begun()+1, time.Now())
		s.Answer(context.Canceled)
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errUnconfirmed)
		wantError(t, p.judge(ctx, s, theTopic), semel.DecideRetry, "nothing was sent to topic "+theTopic)
	})
}
