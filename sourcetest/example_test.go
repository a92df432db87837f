package sourcetest_test

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/sourcetest"
)

func ExampleMemory() {
	ctx := context.Background()
	m := sourcetest.NewMemory(1)
	_ = m.Publish(0, &semel.Message{Body: []byte("hello")})
	_ = m.End()

	got, _ := m.Fetch(ctx, source.Bound{Messages: 10, Bytes: 1 << 20})
	fmt.Printf("%s, delivered %d times before\n", got[0].Message.Body, got[0].Before)

	_, _ = m.Settle(ctx, []source.Settlement{{Delivery: &got[0], Kind: semel.Ack}})
	_, err := m.Fetch(ctx, source.Bound{Messages: 10, Bytes: 1 << 20})
	fmt.Println(err)
	// Output:
	// hello, delivered 0 times before
	// semel: the source has ended
}

func ExampleCases() {
	for _, c := range sourcetest.Cases()[:3] {
		fmt.Println(c.Law)
	}
	// Output:
	// Everything published is delivered at least once, as it was published.
	// Messages of a lane are first delivered in the order in which they were published.
	// A lane is assigned before its first delivery, and every delivery names an assigned lane.
}
