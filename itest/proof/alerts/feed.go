//go:build unix

package alerts

import (
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/proof"
)

const (
	partitions = 2
	made       = "payment.made"
)

// name returns an unused message id.
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

// many publishes n messages to a topic, each with its own id.
func (r *run) many(topic string, n int) {
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

// endpoint is the HTTP endpoint that consumers call.
type endpoint struct {
	address string
	server  *http.Server
	slow    atomic.Int64 // the delay of slow answers, in nanoseconds
	over    chan struct{}
}

func serve() (*endpoint, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	e := &endpoint{address: listener.Addr().String(), over: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /fast", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("POST /slow", func(w http.ResponseWriter, q *http.Request) {
		t := time.NewTimer(time.Duration(e.slow.Load()))
		defer t.Stop()
		select {
		case <-t.C:
			w.WriteHeader(http.StatusNoContent)
		case <-q.Context().Done():
		}
	})
	e.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(e.over)
		_ = e.server.Serve(listener)
	}()
	return e, nil
}

func (e *endpoint) close() {
	_ = e.server.Close()
	<-e.over
}
