//go:build unix

package alerts

import (
	"fmt"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/worlds/processes"
)

const (
	partitions = 2
	made       = "payment.made"
)

// name returns an unused id for a message.
func (r *run) name() string {
	r.sent++
	return fmt.Sprintf("message-%06d", r.sent)
}

// record returns a message as a CloudEvent in binary mode.
func record(topic, id, kind, body string) *kgo.Record {
	r := proof.CloudEvent(int32(len(id)+int(id[len(id)-1]))%partitions, nil, []byte(body), id, "https://shop.example", kind)
	r.Topic = topic
	return r
}

// send publishes a message.
func (r *run) send(topic, id, kind, body string) { r.Kafka.Produce(record(topic, id, kind, body)) }

// publishMany publishes n messages to a topic, each with its own id.
func (r *run) publishMany(topic string, n int) {
	var all []*kgo.Record
	for range n {
		all = append(all, record(topic, r.name(), made, `{"amount": 1}`))
	}
	r.Kafka.Produce(all...)
}

// trickle publishes one message for each consumer.
func (r *run) trickle() {
	var all []*kgo.Record
	for _, topic := range topicsOfAll {
		id := r.name()
		all = append(all, record(topic, id, made, fmt.Sprintf(`{"amount": 1, "id": %q, "order": %q, "version": 1}`, id, id)))
	}
	r.Kafka.Produce(all...)
}

// endpointHandler returns the handler of the endpoint that consumers call.
func (r *run) endpointHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /fast", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("POST /slow", func(w http.ResponseWriter, q *http.Request) {
		processes.Pause(q.Context(), time.Duration(r.slow.Load()))
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}
