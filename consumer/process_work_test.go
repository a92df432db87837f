package consumer_test

import (
	"context"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/memstore"
)

// The race detector checks the fields that Process and Work both use.
func TestOfProcessAndWorkAtOnceOneRuns(t *testing.T) {
	for range 50 {
		c, err := consumer.New(memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { return nil }, consumer.Config{Name: "billing", Identity: identity.By("header:id")})
		if err != nil {
			t.Fatal(err)
		}
		var processed, worked error
		var group worker.Group
		group.Go(func() {
			_, processed = c.Process(t.Context(), &semel.Message{Headers: semel.Headers{{Name: "id", Value: []byte("1")}}})
		})
		worked = c.Work(t.Context())
		group.Wait()
		if (processed == nil) == (worked == nil) {
			t.Fatalf("Process returned %v, and Work %v", processed, worked)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
