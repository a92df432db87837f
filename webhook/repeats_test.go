package webhook_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/webhook"
)

// The provider sends every event several times, independently of the response, and the service is restarted during this
// time. Events that got a 200 are never lost, and no effect happens twice.
func TestAProviderThatRepeatsForThreeDays(t *testing.T) {
	bubble(t, "F3_each_event_takes_effect_once_over_three_restarts", func(t *testing.T) {
		const events, days = 20, 3
		store := memstore.New()
		var now atomic.Pointer[webhook.Receiver] // nil while the service is down
		var running *runningConsumer
		start := func() {
			r := receiver(t, nil)
			running = startConsumer(t, store, r, func(c *consumer.Config) { c.Inbox.Poll = time.Minute })
			now.Store(r)
		}
		stop := func() {
			now.Store(nil)
			running.end(t)
		}
		statuses := map[int]int{}
		for hour := range days * 24 {
			switch hour {
			case 1, 20, 38, 56:
				start()
			case 18, 36, 54:
				stop()
			}
			for i := range events {
				h := http.Handler(http.NotFoundHandler())
				if r := now.Load(); r != nil {
					h = r
				}
				statuses[post(h, paidRequest(event(fmt.Sprint("evt_", i)))).Code]++
			}
			<-time.After(time.Hour)
		}
		stop()
		if statuses[200] != events*(days*24-1-3*2) || statuses[404] != events*7 {
			t.Errorf("answers: %v", statuses)
		}
		for i := range events {
			if got := string(store.Get(fmt.Sprint("effect evt_", i))); got != "1" {
				t.Errorf("event %d took effect %q times", i, got)
			}
		}
	})
}
