package consumer_test

import (
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// unordered is a listSource whose messages have no order.
type unordered struct{ *listSource }

func (unordered) Info() source.Info { return source.Info{Unordered: true} }

func TestAConsumerOfASourceWithoutOrderStartsOnlyWithLanesNone(t *testing.T) {
	for mode, starts := range map[consumer.LaneMode]bool{consumer.LanesPartition: false, consumer.LanesKey: false, consumer.LanesNone: true} {
		bubble(t, mode.String(), func(t *testing.T) {
			store := memstore.New()
			c := config(unordered{newListSource(numbered("a", 3)...)})
			c.Lanes = mode
			err := mustNew(t, store, add, c).Run(t.Context())
			if starts != (err == nil) || !starts && !errors.Is(err, semel.ErrUnsupported) {
				t.Errorf("Run returned %v", err)
			}
			if applied := effect(t, store, "a2") == "1"; applied != starts {
				t.Errorf("applied: %t", applied)
			}
		})
	}
}
