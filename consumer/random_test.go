package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/memstore"
)

// program is a test program that is generated from a seed. A program contains messages in lanes and copies of messages,
// and defines for each id how often and how the handler fails before the handler succeeds, if ever.
type program struct {
	random   *rand.Rand
	messages []*semel.Message
	// failures is the number of remaining failures by id. Each run of the handler decreases the number.
	failures map[string]int
	poison   map[string]bool
	ids      []string

	mutex sync.Mutex
	order map[string][]string // ids by lane, in the order in which their handlers succeeded
}

func newProgram(seed uint64) *program {
	p := &program{random: rand.New(rand.NewPCG(seed, 1)), failures: map[string]int{}, poison: map[string]bool{}, order: map[string][]string{}}
	lanes := 1 + p.random.IntN(4)
	for i := range 5 + p.random.IntN(60) {
		id := fmt.Sprintf("%03d", i)
		m := message(id, fmt.Sprintf(`{"n":%d}`, i))
		m.Topic = fmt.Sprint("lane", p.random.IntN(lanes))
		p.ids, p.messages = append(p.ids, id), append(p.messages, m)
		switch p.random.IntN(10) {
		case 0:
			p.poison[id] = true
		case 1, 2:
			p.failures[id] = 1 + p.random.IntN(3)
		case 3, 4, 5: // a copy later in the lane
			p.messages = append(p.messages, m)
		}
	}
	return p
}

var failingWays = []func() error{
	func() error { return errTest },
	func() error { return semel.RetryAfter(errTest, 3*time.Second) },
	func() error { panic("no") },
	func() error { return semel.Retry(errTest) },
}

func (p *program) handle(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := add(ctx, tx, m); err != nil {
		return err
	}
	id := m.Identity.ID
	if p.poison[id] {
		return semel.Permanent(errTest)
	}
	if p.failures[id] > 0 {
		p.failures[id]--
		return failingWays[p.random.IntN(len(failingWays))]()
	}
	p.order[m.Topic] = append(p.order[m.Topic], id)
	return nil
}

// store returns a memstore whose commits sometimes fail.
func (p *program) store() *memstore.Store {
	faults := 0
	var mutex sync.Mutex
	return memstore.New(memstore.Fail(func(op string) error {
		mutex.Lock()
		defer mutex.Unlock()
		p.mutex.Lock()
		defer p.mutex.Unlock()
		if op != "rows" && op != "control" && faults < 10 && p.random.IntN(12) == 0 {
			faults++
			return errors.New("down")
		}
		return nil
	}))
}

// check returns the differences between the state of the store and the expected state.
func (p *program) check(store *memstore.Store, counts semel.Counts, lanes consumer.LaneMode) error {
	var faults []error
	for _, id := range p.ids {
		want := "1"
		if p.poison[id] {
			want = ""
		}
		if got := string(store.Get("effect " + id)); got != want {
			faults = append(faults, fmt.Errorf("%s has effect %q, want %q", id, got, want))
		}
	}
	applied := int64(len(p.ids) - len(p.poison))
	if counts.Applied != applied || counts.Parked != int64(len(p.poison)) || counts.Duplicates != int64(len(p.messages)-len(p.ids)) || counts.InFlight != 0 {
		faults = append(faults, fmt.Errorf("%+v, of %d messages and %d ids with %d poisoned", counts, len(p.messages), len(p.ids), len(p.poison)))
	}
	if lanes != consumer.LanesPartition {
		return errors.Join(faults...)
	}
	for lane, ids := range p.order {
		// A handler may run again after a rollback, so check uses only the last run of each message.
		last := map[string]int{}
		for i, id := range ids {
			last[id] = i
		}
		before := ""
		for i, id := range ids {
			if last[id] != i {
				continue
			}
			if id < before {
				faults = append(faults, fmt.Errorf("in %s %s was applied after %s", lane, id, before))
			}
			before = id
		}
	}
	return errors.Join(faults...)
}

func TestRandomPrograms(t *testing.T) {
	t.Run("law_12_effects_happen_once_in_order_and_neighbours_are_unharmed", func(t *testing.T) {
		for seed := range uint64(400) {
			synctest.Test(t, func(t *testing.T) {
				p := newProgram(seed)
				store, source := p.store(), newListSource(p.messages...)
				c := config(source)
				c.Workers, c.Batch.MaxSize = 1+p.random.IntN(4), 1+p.random.IntN(20)
				c.Lanes = consumer.LaneMode(p.random.IntN(2))
				c.Retry.MaxAttempts = 4
				counts := runs(t, store, p.handle, c, faults.Plan{Seed: seed + 1})
				if err := p.check(store, counts, c.Lanes); err != nil {
					t.Errorf("seed %d, %d workers, batches of %d, lanes %d: %v", seed, c.Workers, c.Batch.MaxSize, c.Lanes, err)
				}
				if len(source.settled) != len(p.messages) {
					t.Errorf("seed %d: %d of %d deliveries are settled", seed, len(source.settled), len(p.messages))
				}
			})
		}
	})
}
