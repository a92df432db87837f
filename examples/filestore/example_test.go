package filestore_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/examples/filestore"
	"github.com/semel-go/semel/identity"
)

type payment struct {
	Account string
	Amount  int64
}

// A program with its own loop passes each message to Process. The third message is a duplicate of the first message.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "filestore")
	check(err)
	defer os.RemoveAll(folder)
	st, err := filestore.Open(filepath.Join(folder, "shop.log"))
	check(err)
	defer st.Close()

	billing, err := consumer.New(st, func(ctx context.Context, tx *filestore.Tx, m *semel.Message) error {
		p, err := semel.JSON[payment](m)
		if err != nil {
			return err
		}
		_, err = tx.Add(p.Account, p.Amount)
		return err
	}, consumer.Config{
		Name:     "billing",
		Identity: identity.CloudEvents(),
		Logger:   slog.New(slog.DiscardHandler),
		// The store has no inbox, so it cannot park messages.
		OnConflict:     consumer.ActionHalt,
		OnBadIdentity:  consumer.ActionHalt,
		OnPrecondition: consumer.ActionRetry,
		Retry:          consumer.RetryPolicy{OnExhausted: consumer.ActionHalt},
	})
	check(err)

	for _, id := range []string{"1", "2", "1"} {
		m := &semel.Message{
			Attributes: semel.Attributes{ID: id, Source: "shop"},
			Body:       []byte(`{"account": "a", "amount": 21}`),
		}
		d, err := billing.Process(ctx, m)
		check(err)
		fmt.Println(id, d.Kind, d.Ending)
	}
	check(billing.Close(ctx))
	balance, _ := st.Get("a")
	fmt.Printf("a has %s\n", balance)
	// Output:
	// 1 ack applied
	// 2 ack applied
	// 1 ack duplicate
	// a has 42
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
