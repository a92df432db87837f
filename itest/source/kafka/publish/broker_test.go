//go:build unix

package publish

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/kafka"
)

// publishWorkers runs workers. Each worker publishes one message after the other and waits for each confirmation.
type publishWorkers struct {
	t         *testing.T
	publisher *kafka.Publisher
	workers   sync.WaitGroup
	stop      chan struct{}
	// The field published is the number of confirmed messages. The field unknown is the number of calls with an unknown
	// outcome. The field unsent is the number of calls in which nothing was sent.
	published, unknown, unsent atomic.Int64
}

func publish(t *testing.T, brokers []string, topic string) *publishWorkers {
	t.Helper()
	p := must.Get(kafka.NewPublisher(kafka.PublisherConfig{Brokers: brokers, Topic: topic, Timeout: time.Second, Logger: slog.New(slog.DiscardHandler)}))(t)
	t.Cleanup(p.Close)
	all := &publishWorkers{t: t, publisher: p, stop: make(chan struct{})}
	for n := range workers {
		all.workers.Go(func() { all.work(n) })
	}
	return all
}

func (p *publishWorkers) work(worker int) {
	for n := 0; ; n++ {
		m := semel.NewMessage(semel.Key{Consumer: "receipts", Source: "shop", ID: fmt.Sprintf("%d-%d", worker, n)}, []byte("paid"))
		for {
			err := p.publisher.Publish(p.t.Context(), m)
			if err == nil {
				p.published.Add(1)
				break
			}
			var decided *semel.HandlerError
			switch {
			case !errors.As(err, &decided):
				p.t.Errorf("%v", err)
			case decided.Decision == semel.DecideUnknown:
				p.unknown.Add(1)
			case decided.Decision == semel.DecideRetry:
				p.unsent.Add(1)
			default:
				p.t.Errorf("%v: %v", decided.Decision, err)
				return
			}
		}
		select {
		case <-p.stop:
			return
		default:
		}
	}
}

// await waits until a count has grown by the number in the parameter more.
func (p *publishWorkers) await(of *atomic.Int64, more int64) {
	p.t.Helper()
	want := of.Load() + more
	if !services.Within(patience, func() bool { return of.Load() >= want }) {
		p.t.Fatalf("published %d, unknown %d, unsent %d, and no more", p.published.Load(), p.unknown.Load(), p.unsent.Load())
	}
}

// end stops the workers and returns the number of published messages.
func (p *publishWorkers) end() int64 {
	close(p.stop)
	p.workers.Wait()
	return p.published.Load()
}

func TestABrokerThatIsFrozenAndRestarted(t *testing.T) {
	cluster := services.StartKafka(t, services.KafkaOptions{})
	topic := services.Topic(t, cluster.Brokers(), 3)
	p := publish(t, cluster.Brokers(), topic)
	broker := cluster.Node(0)
	p.await(&p.published, 1000)
	t.Run("E3_a_frozen_broker_leaves_the_outcome_unknown_and_all_goes_on_behind_it", func(t *testing.T) {
		broker.Freeze()
		p.await(&p.unknown, 3*workers)
		broker.Thaw()
		p.await(&p.published, 1000)
	})
	t.Run("a_broker_that_is_killed_and_started_again_is_waited_for", func(t *testing.T) {
		broker.Kill()
		p.await(&p.unknown, workers)
		broker.Start()
		p.await(&p.published, 1000)
	})
	published := p.end()
	t.Run("I4_one_process_writes_one_record_for_each_message_through_all_of_it", func(t *testing.T) {
		ids := map[string]int{}
		for _, r := range topics.Open(t, cluster.Brokers()).Read(topic) {
			ids[header(r, "ce_id")]++
		}
		for id, n := range ids {
			if n != 1 {
				t.Errorf("%s has %d records", id, n)
			}
		}
		if int64(len(ids)) != published {
			t.Errorf("%d messages were confirmed, and %d are there", published, len(ids))
		}
		t.Logf("%d messages, %d unknown outcomes, %d calls in which nothing was sent", published, p.unknown.Load(), p.unsent.Load())
	})
}

func TestATopicThatIsMadeAnew(t *testing.T) {
	t.Run("trap_45_what_is_published_goes_to_the_new_one", func(t *testing.T) {
		brokers := services.Kafka(t)
		topic := services.Topic(t, brokers, 2)
		p := must.Get(kafka.NewPublisher(kafka.PublisherConfig{Brokers: brokers, Topic: topic, Logger: slog.New(slog.DiscardHandler)}))(t)
		defer p.Close()
		c := topics.Open(t, brokers)
		message := func(id string) *semel.Message {
			return semel.NewMessage(semel.Key{Consumer: "receipts", Source: "shop", ID: id}, []byte("paid"))
		}
		must.OK(t, p.Publish(t.Context(), message("before")))
		must.Get(c.Admin.DeleteTopic(t.Context(), topic))(t)
		made := must.Get(c.Admin.CreateTopic(t.Context(), 2, 1, nil, topic))(t)
		services.AwaitTopic(t, brokers, topic, made.ID)
		for tries := 0; ; tries++ {
			err := p.Publish(t.Context(), message("after"))
			if err == nil {
				break
			}
			if tries > 10 {
				t.Fatal(err)
			}
			if strings.Contains(err.Error(), "before") {
				t.Error(err)
			}
		}
		if all := c.Read(topic); len(all) != 1 || header(all[0], "ce_id") != "after" {
			t.Errorf("%d records", len(all))
		}
	})
}
