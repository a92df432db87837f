// Program fulfilment fulfils orders in three steps: reserve, charge, ship. The processes die at different
// steps. Each step takes effect once, and the next process continues after the last completed step.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
)

const orders = `{"specversion":"1.0","id":"order-1","source":"shop","type":"placed","data":{"item":"lamp","euro":40}}
{"specversion":"1.0","id":"order-2","source":"shop","type":"placed","data":{"item":"chair","euro":90}}
`

// The time for which the messages of a dead process wait for another process.
const lease = time.Second

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// run fulfils the orders in several processes. All processes but the last die, each at another step. The store plays
// the role of a database, because it remains when a process dies.
func run(ctx context.Context) error {
	var dead atomic.Bool
	store := memstore.New(memstore.Fail(func(string) error {
		if dead.Load() {
			return errors.New("its process is dead")
		}
		return nil
	}))
	provider := &provider{charged: map[string]int{}}
	for n, dies := range []death{{"reserve", faults.AfterEffect}, {"charge", faults.AfterEffect}, {"ship", faults.AfterCommit}, {}} {
		if n > 0 {
			time.Sleep(lease + 100*time.Millisecond) // the claims of the dead process expire
		}
		fmt.Printf("process %d\n", n+1)
		if err := process(ctx, store, provider, &dead, dies); err != nil {
			return err
		}
	}
	for _, order := range []string{"order-1", "order-2"} {
		fmt.Printf("%s: reserved %s, shipped %s, charged %d\n", order, store.Get("reserve "+order), store.Get("ship "+order), provider.charged["charge of "+order])
	}
	fmt.Printf("the provider was asked %d times\n", provider.asked)
	return nil
}

// death is a step, and a point of the step, at which a process dies.
type death struct {
	step  string
	point faults.Point
}

// process plays the role of a process that dies at the given point.
func process(ctx context.Context, store *memstore.Store, p *provider, dead *atomic.Bool, dies death) error {
	dead.Store(false)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var step atomic.Value // the last executed step
	plan := faults.Plan{At: func(point faults.Point, _ int) {
		if point == dies.point && step.Load() == dies.step && dead.CompareAndSwap(false, true) {
			fmt.Printf("  dies, %s\n", point)
			cancel()
		}
	}}
	steps := []consumer.Step[*memstore.Tx]{
		{Name: "reserve", Run: func(_ context.Context, tx *memstore.Tx, m *semel.Message, _ consumer.Done) ([]byte, error) {
			return []byte("shelf 4"), tx.Add("reserve "+m.Identity.ID, 1)
		}},
		{Name: "charge", Run: func(_ context.Context, _ *memstore.Tx, m *semel.Message, _ consumer.Done) ([]byte, error) {
			return p.charge(m.IdempotencyKey("charge"), "charge of "+m.Identity.ID), nil
		}},
		{Name: "ship", Run: func(_ context.Context, tx *memstore.Tx, m *semel.Message, done consumer.Done) ([]byte, error) {
			fmt.Printf("  ships %s from %s, receipt %s\n", m.Identity.ID, done.Output("reserve"), done.Output("charge"))
			return nil, tx.Add("ship "+m.Identity.ID, 1)
		}},
	}
	for i := range steps { // only for the printed output
		then := steps[i].Run
		steps[i].Run = func(ctx context.Context, tx *memstore.Tx, m *semel.Message, done consumer.Done) ([]byte, error) {
			step.Store(steps[i].Name)
			fmt.Printf("  %s %s\n", steps[i].Name, m.Identity.ID)
			return then(ctx, tx, m, done)
		}
	}
	c, err := consumer.NewSteps(store, steps, consumer.Config{
		Name: "fulfilment", Source: file.Stdin(strings.NewReader(orders), file.Options{}), Identity: identity.CloudEvents(),
		Strategy: consumer.StrategyInbox, AckOnReceipt: true,
		Workers: 1, Batch: consumer.BatchLimits{MaxSize: 1}, Inbox: consumer.InboxPolicy{Lease: lease, Poll: 50 * time.Millisecond},
		Drain: time.Second, IdleExit: 2 * time.Second, Logger: slog.New(slog.DiscardHandler),
	}, plan)
	if err != nil {
		return err
	}
	if err := c.Run(ctx); err != nil && !dead.Load() {
		return err
	}
	return nil
}

// provider charges once for each key, as real providers do while they remember the key.
type provider struct {
	asked    int
	receipts map[string]string
	charged  map[string]int
}

func (p *provider) charge(key, what string) (receipt []byte) {
	p.asked++
	if p.receipts == nil {
		p.receipts = map[string]string{}
	}
	if p.receipts[key] == "" {
		p.charged[what]++
		p.receipts[key] = fmt.Sprint("r-", len(p.receipts)+1)
	}
	return []byte(p.receipts[key])
}
