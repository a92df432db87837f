package consumer_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// payments contains three deliveries of two payments.
const payments = `{"specversion":"1.0","id":"1","source":"shop","type":"payment","data":{"account":"a","amount":30}}
{"specversion":"1.0","id":"2","source":"shop","type":"payment","data":{"account":"a","amount":12}}
{"specversion":"1.0","id":"1","source":"shop","type":"payment","data":{"account":"a","amount":30}}
`

type order struct {
	Account string
	Amount  int64
}

// policy returns the configuration of consumer "billing".
func policy(src source.Source) consumer.Config {
	return consumer.Config{Name: "billing", Source: src, Identity: identity.CloudEvents(), Logger: slog.New(slog.DiscardHandler)}
}

// book is the handler, which writes through the transaction of the marker.
func book(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
	p, err := semel.JSON[order](m)
	if err != nil {
		return err // not an order: parked without a retry
	}
	return tx.Add("balance "+p.Account, p.Amount)
}

func ExampleNew() {
	store := memstore.New()
	billing, err := consumer.New(store, book, policy(file.Stdin(strings.NewReader(payments), file.Options{})))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := billing.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	counts := billing.Counts()
	fmt.Printf("%s of %d deliveries, %d of them duplicates\n", store.Get("balance a"), counts.Deliveries, counts.Duplicates)
	// Output: 42 of 3 deliveries, 1 of them duplicates
}

func ExampleNewBatch() {
	store := memstore.New()
	// handleBatch is called once for each batch, for example to write with one set-based statement.
	handleBatch := func(_ context.Context, tx *memstore.Tx, ms []*semel.Message) error {
		var sum int64
		for _, m := range ms {
			p, err := semel.JSON[order](m)
			if err != nil {
				return err
			}
			sum += p.Amount
		}
		return tx.Add("turnover", sum)
	}
	reports, err := consumer.NewBatch(store, handleBatch, policy(file.Stdin(strings.NewReader(payments), file.Options{})))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := reports.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s\n", store.Get("turnover"))
	// Output: 42
}

func paymentOf(id string, amount int) *semel.Message {
	header := func(name, value string) semel.Header { return semel.Header{Name: name, Value: []byte(value)} }
	return &semel.Message{
		Headers: semel.Headers{header("ce-specversion", "1.0"), header("ce-id", id), header("ce-source", "shop"), header("ce-type", "payment")},
		Body:    fmt.Appendf(nil, `{"account":"a","amount":%d}`, amount),
	}
}

func ExampleConsumer_Process() {
	ctx := context.Background()
	billing, err := consumer.New(memstore.New(), book, policy(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = billing.Close(ctx) }()
	for _, m := range []*semel.Message{paymentOf("1", 30), paymentOf("1", 30), paymentOf("1", 99)} {
		// In your own receive loop, Process returns whether to ack or nack the message.
		d, err := billing.Process(ctx, m)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(d.Kind, d.Ending)
	}
	// Output:
	// ack applied
	// ack duplicate
	// ack conflict
}

func ExampleConsumer_TryMark() {
	ctx := context.Background()
	st := memstore.New()
	billing, err := consumer.New(st, book, policy(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		// Begin a transaction of your own; with database/sql use db.BeginTx.
		yours, _, err := st.Begin(ctx, store.TxOptions{}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		tx, m := yours.Tx(store.All), paymentOf("1", 30)
		verdict, err := billing.TryMark(ctx, tx, m)
		if err == nil && verdict.Kind == store.Fresh {
			err = book(ctx, tx, m)
		}
		fmt.Println(verdict.Kind, err, yours.Commit(ctx, store.Ending{}).Outcome)
	}
	fmt.Printf("%s\n", st.Get("balance a"))
	// Output:
	// fresh <nil> committed
	// seen <nil> committed
	// 30
}
