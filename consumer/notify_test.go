package consumer_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
)

// belfry is a store whose processes notify one another, unless the test prevents it.
type belfry struct {
	*memstore.Store

	mutex sync.Mutex
	ears  []func()
	rings []time.Time
	deaf  error
	fell  chan struct{} // closed when listening stops
}

func newBelfry() *belfry { return &belfry{Store: memstore.New(), fell: make(chan struct{})} }

func (s *belfry) Listen(ctx context.Context, _ string, due func()) error {
	s.mutex.Lock()
	if s.deaf != nil {
		defer s.mutex.Unlock()
		return s.deaf
	}
	s.ears = append(s.ears, due)
	fell := s.fell
	s.mutex.Unlock()
	due()
	select {
	case <-ctx.Done():
		return nil
	case <-fell:
		return errAway
	}
}

func (s *belfry) Notify(context.Context, string) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.rings = append(s.rings, time.Now())
	if s.deaf != nil {
		return s.deaf
	}
	for _, due := range s.ears {
		due()
	}
	return nil
}

// fall makes listening for notifications fail with the error why. If the error why is nil, listening works again.
func (s *belfry) fall(why error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.deaf, s.ears = why, nil; why != nil {
		close(s.fell)
		s.fell = make(chan struct{})
	}
}

// seldom returns the configuration of a consumer that polls its inbox once a minute.
func seldom() consumer.Config {
	c := withoutSource(config(nil))
	c.Inbox.Poll, c.IdleExit = time.Minute, 24*time.Hour
	return c
}

func TestNotifications(t *testing.T) {
	// follow runs a consumer of the store and receives a message between two polls. The result of follow is the time
	// until the message is applied.
	follow := func(t *testing.T, store *belfry, said *log, notify bool, before func()) time.Duration {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		applied := make(chan time.Time, 1)
		c := seldom()
		c.Logger = said.logger()
		running := mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			applied <- time.Now()
			return add(ctx, tx, m)
		}, c)
		ended := make(chan error, 1)
		go func() { ended <- running.Run(ctx) }()
		pass(70 * time.Second)
		before()
		fillInbox(t, store.Store, 1)
		at := time.Now()
		if notify {
			_ = store.Notify(ctx, "billing")
		}
		took := (<-applied).Sub(at)
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return took
	}
	bubble(t, "D6_who_hears_a_notification_asks_at_once", func(t *testing.T) {
		if took := follow(t, newBelfry(), &log{}, true, func() {}); took > 50*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
	bubble(t, "D6_trap_T39_what_was_notified_before_it_could_be_seen_is_found_by_asking", func(t *testing.T) {
		store := newBelfry()
		took := follow(t, store, &log{}, false, func() { _ = store.Notify(t.Context(), "billing") })
		if took > time.Minute || len(store.rings) != 1 {
			t.Errorf("the effect took %v, with %d notifications", took, len(store.rings))
		}
	})
	bubble(t, "D6_who_hears_no_more_asks_says_so_once_and_listens_again", func(t *testing.T) {
		store, said := newBelfry(), &log{}
		if took := follow(t, store, said, true, func() { store.fall(errAway); pass(10 * time.Minute) }); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		if n := strings.Count(said.String(), "notifications are not heard"); n != 1 {
			t.Errorf("it is logged %d times:\n%s", n, said.String())
		}
		store, said = newBelfry(), &log{}
		if took := follow(t, store, said, true, func() { store.fall(errAway); pass(time.Minute); store.fall(nil); pass(time.Minute) }); took > 50*time.Millisecond {
			t.Errorf("after listening worked again the effect took %v", took)
		}
		if !strings.Contains(said.String(), "notifications are heard again") {
			t.Error(said.String())
		}
	})
	bubble(t, "D6_a_store_that_was_not_set_up_for_it_is_asked", func(t *testing.T) {
		store, said := newBelfry(), &log{}
		store.deaf = semel.ErrUnsupported
		if took := follow(t, store, said, true, func() {}); took > time.Minute || strings.Contains(said.String(), "notifications") {
			t.Errorf("it took %v:\n%s", took, said.String())
		}
	})
	bubble(t, "D6_receipts_notify_after_their_commit_and_ten_times_a_second_at_most", func(t *testing.T) {
		store, source := newBelfry(), newListSource(numbered("m", 4000)...)
		source.endless = true
		c := config(source)
		c.Strategy, c.AckOnReceipt, c.IdleExit, c.Batch.MaxSize, c.MaxUnacked.Messages = consumer.StrategyInbox, true, time.Second, 10, 100
		source.takes = 20 * time.Millisecond
		began := time.Now()
		runs(t, store, add, c)
		most := 1 + int(time.Since(began)/(100*time.Millisecond))
		if n := len(store.rings); n < 3 || n > most {
			t.Errorf("%d notifications within %v", n, time.Since(began))
		}
	})
	bubble(t, "D6_what_cannot_be_sent_is_said_once_a_minute", func(t *testing.T) {
		store, source, said := newBelfry(), newListSource(numbered("m", 400)...), &log{}
		store.deaf, source.endless = errors.New("no room"), true
		c := config(source)
		c.Strategy, c.AckOnReceipt, c.IdleExit, c.Batch.MaxSize, c.Logger = consumer.StrategyInbox, true, time.Second, 10, said.logger()
		source.takes, c.MaxUnacked.Messages = 200*time.Millisecond, 10
		if counts := runs(t, store, add, c); counts.Inbox.Applied != 400 {
			t.Errorf("%+v", counts)
		}
		if n := strings.Count(said.String(), "other processes are not told"); n != 1 {
			t.Errorf("it is logged %d times", n)
		}
	})
}
