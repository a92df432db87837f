package consumer_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// slowFirst is a Fingerprinter that takes a second for the first message.
type slowFirst struct{ begun chan struct{} }

func (slowFirst) Validate() error { return nil }

func (s slowFirst) Fingerprint(m *semel.Message) (semel.Fingerprint, error) {
	if bytes.HasPrefix(m.Body, []byte("slow")) {
		close(s.begun)
		pass(time.Second)
	}
	return semel.Fingerprint{}, nil
}

// slowly returns messages of which the first takes a second to read. The messages are so large that each core
// gets a reader.
func slowly(topic string) []*semel.Message {
	all := numbered(topic, 9)
	for i, m := range all {
		m.Topic, m.Body = topic, []byte("fast"+strings.Repeat("x", 64<<10))
		if i == 0 {
			copy(m.Body, "slow")
		}
	}
	return all
}

// firstThen delivers one message, and all other messages with the next Fetch.
type firstThen struct{ *listSource }

func (s firstThen) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	if s.fetches == 0 {
		most.Messages = 1
	}
	return s.listSource.Fetch(ctx, most)
}

func TestAFetchWithAFirstMessageThatTakesASecondToRead(t *testing.T) {
	bubble(t, "is_handed_on_in_order_and_a_stop_finds_everything_else_done", func(t *testing.T) {
		src := firstThen{newListSource(append(numbered("before", 1), slowly("m")...)...)}
		src.endless = true
		c := config(src)
		slow := slowFirst{make(chan struct{})}
		c.Fingerprint = slow
		var mutex sync.Mutex
		var order []string
		run := start(t, mustNew(t, memstore.New(), func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
			mutex.Lock()
			defer mutex.Unlock()
			order = append(order, m.Identity.ID)
			return nil
		}, c))
		<-slow.begun
		pass(time.Second / 2)
		src.mutex.Lock()
		if src.settled["0"] != 1 {
			t.Error("earlier messages are not settled while it is read")
		}
		src.mutex.Unlock()
		pass(time.Second)
		began := time.Now()
		run.stop()
		if err := run.wait(); err != nil || time.Since(began) > time.Second {
			t.Errorf("the stop took %v: %v", time.Since(began), err)
		}
		if !slices.IsSorted(order[1:]) || len(order) != 10 {
			t.Errorf("handled in the order %v", order)
		}
	})
	bubble(t, "holds_up_neither_a_stop_nor_a_revocation_for_longer_than_it_is_read", func(t *testing.T) {
		src := newListSource(slowly("m")...)
		src.endless = true
		c := config(src)
		c.Drain = 5 * time.Second
		slow := slowFirst{make(chan struct{})}
		c.Fingerprint = slow
		run := start(t, mustNew(t, memstore.New(), add, c))
		<-slow.begun
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		src.observer.Revoking(ctx, source.Lane{ID: "m", Epoch: 1})
		if took := time.Since(began); took > time.Second {
			t.Errorf("the revocation took %v", took)
		}
		run.stop()
		if err := run.wait(); err != nil || time.Since(began) > 2*time.Second {
			t.Errorf("the stop came after %v: %v", time.Since(began), err)
		}
	})
}
