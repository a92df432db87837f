package consumer_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/memstore"
)

// history contains versions of two orders; one version arrives late, and one never.
const history = `{"specversion":"1.0","id":"1","source":"shop","type":"order","subject":"o-1","data":{"version":1,"what":"placed"}}
{"specversion":"1.0","id":"3","source":"shop","type":"order","subject":"o-1","data":{"version":3,"what":"packed"}}
{"specversion":"1.0","id":"5","source":"shop","type":"order","subject":"o-2","data":{"version":2,"what":"paid"}}
{"specversion":"1.0","id":"2","source":"shop","type":"order","subject":"o-1","data":{"version":2,"what":"paid"}}
`

func ExampleVersionPolicy() {
	store := memstore.New()
	write := func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
		of, err := semel.JSON[struct{ What string }](m)
		if err != nil {
			return err
		}
		before, err := tx.Get(m.Subject())
		if err != nil {
			return err
		}
		return tx.Set(m.Subject(), fmt.Appendf(before, "%s ", of.What))
	}
	c := policy(file.Stdin(strings.NewReader(history), file.Options{}))
	c.Version = &consumer.VersionPolicy{By: identity.Stream("subject").At("body:/version"), Gap: time.Hour}
	orders, err := consumer.New(store, write, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := orders.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	gaps, err := store.Streams(context.Background(), admin.StreamFilter{Gaps: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("o-1:", strings.TrimSpace(string(store.Get("o-1"))))
	for _, gap := range gaps {
		fmt.Printf("%s: at %d, and %d wait from version %d on\n", gap.Name, gap.Last, gap.Blocked, gap.First)
	}
	// Output:
	// o-1: placed paid packed
	// o-2: at 0, and 1 wait from version 2 on
}

// reservations contains reservations of two articles. The article is the key of a message.
const reservations = `{"key":"lamp","headers":{"id":"1"},"body":{"units":3}}
{"key":"lamp","headers":{"id":"2"},"body":{"units":9}}
{"key":"chair","headers":{"id":"3"},"body":{"units":4}}
{"key":"lamp","headers":{"id":"4"},"body":{"units":1}}
`

func ExampleConfig_lanes() {
	store := memstore.New()
	reserve := func(_ context.Context, tx *memstore.Tx, m *semel.Message) error {
		of, err := semel.JSON[struct{ Units int64 }](m)
		if err != nil {
			return err
		}
		if of.Units > 5 {
			return semel.Permanent(fmt.Errorf("%d units are more than there are", of.Units))
		}
		return tx.Add(string(m.Key), of.Units)
	}
	c := policy(file.Stdin(strings.NewReader(reservations), file.Options{Format: file.Envelope}))
	c.Identity, c.Lanes = identity.By("header:id"), consumer.LanesKey // with OnParkedBlock, its default
	stock, err := consumer.New(store, reserve, c)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := stock.Run(context.Background()); err != nil {
		fmt.Println(err)
	}
	counts := stock.Counts()
	fmt.Printf("lamps %s, chairs %s; %d parked, %d behind it\n", store.Get("lamp"), store.Get("chair"), counts.Parked, counts.Waiting)
	// Output: lamps 3, chairs 4; 1 parked, 1 behind it
}
