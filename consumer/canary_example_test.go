package consumer_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/memstore"
)

const welcome = `{"specversion":"1.0","id":"1","source":"shop","type":"customer","data":{"name":"ann"}}
`

// The handler sends a mail, which no rollback undoes. A canary rerun shows the fault: the mail is sent twice.
func ExampleConfig_canary() {
	store, mails := memstore.New(), 0
	greet := func(_ context.Context, tx *memstore.Tx, _ *semel.Message) error {
		mails++
		return tx.Add("customers", 1)
	}
	c := policy(file.Stdin(strings.NewReader(welcome), file.Options{}))
	c.Canary = 1 // every message; in production, for example, 1000
	customers, err := consumer.New(store, greet, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := customers.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s customer, %d mails, %d rerun\n", store.Get("customers"), mails, customers.Counts().Rerun)
	// Output: 1 customer, 2 mails, 1 rerun
}
