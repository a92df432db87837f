package consumer_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
)

// ofKeys returns n messages of one lane, whose keys have a Zipf distribution (1.1). The body of a message is
// the number of the message within its key.
func ofKeys(n, keys int) (all []*semel.Message, hottest int) {
	random := rand.New(rand.NewPCG(1, 2))
	zipf := rand.NewZipf(random, 1.1, 1, uint64(keys-1))
	places := map[uint64]int{}
	for i := range n {
		key := zipf.Uint64()
		places[key]++
		hottest = max(hottest, places[key])
		m := message(fmt.Sprint("m", i), strconv.Itoa(places[key]))
		m.Key, m.Topic = fmt.Append(nil, key), "a"
		all = append(all, m)
	}
	return all, hottest
}

// requireNextOfKey is a handler that fails unless the message is the next message of its key.
func requireNextOfKey(tx *memstore.Tx, m *semel.Message) error {
	key := "key " + string(m.Key)
	had, err := tx.Get(key)
	if err != nil {
		return err
	}
	before, _ := strconv.Atoi(string(had))
	if place, _ := strconv.Atoi(string(m.Body)); place != before+1 {
		return semel.Permanent(fmt.Errorf("%d of key %s follows %d", place, m.Key, before))
	}
	return tx.Add(key, 1)
}

func TestLanesOfKeys(t *testing.T) {
	bubble(t, "C8_law_8_each_keeps_its_order_through_retries_and_others_go_on", func(t *testing.T) {
		messages, _ := ofKeys(3000, 50)
		c := config(newListSource(messages...))
		c.Lanes, c.Workers, c.Retry.InitialDelay, c.Retry.MaxDelay, c.IdleExit = consumer.LanesKey, 6, 20*time.Millisecond, time.Second, time.Minute
		c.Retry.Budget = consumer.RetryBudget{PerSecond: 1000, Percent: 100}
		var under, most atomic.Int32
		store := memstore.New()
		counts, err := consume(t, store, func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
			most.Store(max(most.Load(), under.Add(1)))
			defer under.Add(-1)
			pass(time.Millisecond)
			if m.Body[len(m.Body)-1] == '7' && m.Attempt < 3 {
				return errTest
			}
			return requireNextOfKey(tx, m)
		}, c)
		if err != nil || counts.Applied != 3000 || counts.Parked != 0 || most.Load() < 4 {
			t.Errorf("%v: %+v, %d at once", err, counts, most.Load())
		}
	})
}
