package consumer_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

func TestCopiesInsideOneProcess(t *testing.T) {
	bubble(t, "case_4_copies_ride_on_the_first_and_end_with_it", func(t *testing.T) {
		for _, end := range []struct {
			name string
			says error
			want semel.Counts
		}{
			{"applied", nil, semel.Counts{Deliveries: 9, Applied: 1, Duplicates: 8}},
			{"parked", semel.Park("look"), semel.Counts{Deliveries: 9, Parked: 1, Duplicates: 8}},
			{"discarded", semel.Discard("not ours"), semel.Counts{Deliveries: 9, Discarded: 1, Duplicates: 8}},
		} {
			var messages []*semel.Message
			for i := range 9 {
				m := message("1", `{}`)
				m.Topic = fmt.Sprint("lane", i%3)
				messages = append(messages, m)
			}
			store, source, ran := memstore.New(), newListSource(messages...), 0
			var mutex sync.Mutex
			c := config(source)
			c.Batch.MaxSize = 2
			counts := runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				mutex.Lock()
				defer mutex.Unlock()
				ran++
				return end.says
			}, c)
			if counts != end.want || ran != 1 || len(source.settled) != 9 {
				t.Errorf("%s: %+v, ran %d, %d settled", end.name, counts, ran, len(source.settled))
			}
			if all := rows(t, store); end.says != nil && (len(all) != 1 || all[0].Repeated != 8) {
				t.Errorf("%s: rows %+v", end.name, all)
			}
		}
	})
	bubble(t, "trap_T13_a_retry_is_not_taken_for_a_duplicate_of_itself_and_its_copies_wait", func(t *testing.T) {
		store, ran := memstore.New(), 0
		source := newListSource(message("1", `{}`), message("1", `{}`), message("1", `{}`))
		counts := runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			if ran++; ran < 5 {
				return errTest
			}
			return add(ctx, tx, m)
		}, config(source))
		if counts.Applied != 1 || counts.Duplicates != 2 || ran != 5 || effect(t, store, "1") != "1" || len(source.settled) != 3 {
			t.Errorf("%+v, ran %d, effect %s, settled %v", counts, ran, effect(t, store, "1"), source.settled)
		}
	})
	bubble(t, "trap_T12_copies_at_any_place_of_a_batch_spoil_nothing", func(t *testing.T) {
		for first := range 8 {
			for second := first + 1; second < 8; second++ {
				messages := numbered("m", 8)
				messages[second] = message(fmt.Sprint("m", first), fmt.Sprintf(`{"n":%d}`, first))
				messages[second].Topic = "m"
				store, source := memstore.New(), newListSource(messages...)
				counts := runs(t, store, add, config(source))
				if counts.Applied != 7 || counts.Duplicates != 1 || len(source.settled) != 8 || effect(t, store, fmt.Sprint("m", first)) != "1" {
					t.Errorf("copies at %d and %d: %+v", first, second, counts)
				}
			}
		}
	})
	bubble(t, "trap_5_two_broker_messages_of_one_producer_message_have_one_effect", func(t *testing.T) {
		one, two := message("1", `{"n":1}`), message("1", `{"n":1}`)
		one.Origin, two.Origin = semel.Origin{Partition: 0, Offset: 7, BrokerID: "x"}, semel.Origin{Partition: 3, Offset: 9, BrokerID: "y"}
		two.Topic = "other"
		store := memstore.New()
		counts := runs(t, store, add, config(newListSource(one, two)))
		if counts.Applied != 1 || counts.Duplicates != 1 || effect(t, store, "1") != "1" {
			t.Errorf("%+v", counts)
		}
	})
}

// pairOf runs two consumers with the same name. The handler of the first consumer runs for 3 s for message "1" and then
// returns the error that the parameter says contains. The second consumer gets message "1" together with other
// messages.
func pairOf(t *testing.T, says error) (store *memstore.Store, second semel.Counts, ranAt time.Duration, attempts, entries int, settledAt time.Duration) {
	store = memstore.New()
	began := time.Now()
	first := config(newListSource(message("1", `{}`)))
	first.Retry.MaxAttempts, first.Retry.InitialDelay, first.MaxInMemoryWait = 1000, 10*time.Second, 10*time.Second
	ctx, cancel := context.WithCancel(t.Context())
	holder := mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
		pass(3 * time.Second)
		if says != nil {
			cancel()
			return says
		}
		return add(ctx, tx, m)
	}, first)
	ended := make(chan error, 1)
	go func() { ended <- holder.Run(ctx) }()
	pass(100 * time.Millisecond)
	synctest.Wait()
	messages := append(append(numbered("m", 20), message("1", `{}`)), numbered("n", 20)...)
	messages[20].Topic = "m"
	src := watchSource(messages...)
	src.onSettle = func(_ context.Context, all []source.Settlement) ([]int, error) {
		for _, s := range all {
			if string(s.Delivery.Message.Headers[0].Value) == "1" {
				settledAt = time.Since(began)
			}
		}
		return nil, nil
	}
	var mutex sync.Mutex
	c := config(src)
	c.Retry.MaxAttempts, c.Workers = 1, 2
	second = runs(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
		mutex.Lock()
		defer mutex.Unlock()
		if m.Identity.ID == "1" {
			entries++
			attempts = m.Attempt
		} else {
			ranAt = max(ranAt, time.Since(began))
		}
		return add(ctx, tx, m)
	}, c)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	cancel()
	return store, second, ranAt, attempts, entries, settledAt
}

func TestACopyInFlightInAnotherProcess(t *testing.T) {
	bubble(t, "case_5_a_copy_in_flight_elsewhere_is_waited_for_without_an_attempt_and_its_neighbours_go_on", func(t *testing.T) {
		store, counts, ranAt, _, entries, _ := pairOf(t, nil)
		if counts.Applied != 40 || counts.Duplicates != 1 || counts.Retried != 0 || entries != 0 || effect(t, store, "1") != "1" {
			t.Errorf("%+v, entered %d times, effect %s", counts, entries, effect(t, store, "1"))
		}
		if ranAt > time.Second {
			t.Errorf("a neighbour waited %v", ranAt)
		}
	})
	bubble(t, "trap_7_the_loser_of_two_concurrent_copies_is_settled_only_after_the_winner_has_committed", func(t *testing.T) {
		if _, _, _, _, _, settledAt := pairOf(t, nil); settledAt < 3*time.Second {
			t.Errorf("settled after %v", settledAt)
		}
	})
	bubble(t, "trap_T26_the_handler_is_entered_once_for_two_concurrent_copies", func(t *testing.T) {
		if _, _, _, _, entries, _ := pairOf(t, nil); entries != 0 {
			t.Errorf("the second consumer entered the handler %d times", entries)
		}
	})
	bubble(t, "trap_8_when_the_winner_rolls_back_the_waiter_runs_the_handler_in_its_first_attempt", func(t *testing.T) {
		store, counts, _, attempts, entries, settledAt := pairOf(t, semel.RetryAfter(errTest, 10*time.Second))
		if counts.Applied != 41 || attempts != 1 || entries != 1 || effect(t, store, "1") != "1" || settledAt < 3*time.Second {
			t.Errorf("%+v, attempt %d, entered %d times, effect %s", counts, attempts, entries, effect(t, store, "1"))
		}
	})
	bubble(t, "trap_T44_a_copy_that_arrives_while_a_retry_is_pending_never_runs_beside_it", func(t *testing.T) {
		store := memstore.New()
		var mutex sync.Mutex
		inside, most, ran := 0, 0, 0
		handle := func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			mutex.Lock()
			ran++
			failing := ran < 6
			inside++
			most = max(most, inside)
			mutex.Unlock()
			pass(700 * time.Millisecond)
			mutex.Lock()
			inside--
			mutex.Unlock()
			if failing {
				return errTest
			}
			return add(ctx, tx, m)
		}
		first := start(t, mustNew(t, store, handle, config(newListSource(message("1", `{}`)))))
		second := start(t, mustNew(t, store, handle, config(newListSource(message("1", `{}`), message("1", `{}`)))))
		if err := first.wait(); err != nil {
			t.Error(err)
		}
		if err := second.wait(); err != nil {
			t.Error(err)
		}
		if most != 1 || effect(t, store, "1") != "1" {
			t.Errorf("%d handlers at once, effect %s", most, effect(t, store, "1"))
		}
	})
	bubble(t, "trap_T21_fifty_consumers_with_one_message_have_one_effect", func(t *testing.T) {
		store := memstore.New()
		var all []*runningConsumer
		for range 50 {
			all = append(all, start(t, mustNew(t, store, func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
				pass(time.Millisecond)
				return add(ctx, tx, m)
			}, config(newListSource(message("1", `{}`))))))
		}
		for _, run := range all {
			if err := run.wait(); err != nil {
				t.Error(err)
			}
		}
		if effect(t, store, "1") != "1" {
			t.Errorf("effect %s", effect(t, store, "1"))
		}
	})
}
