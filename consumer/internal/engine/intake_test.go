package engine

import (
	"context"
	"testing"

	"github.com/semel-go/semel/internal/machine"
)

func TestAFetchThatIsCancelled(t *testing.T) {
	t.Run("law_11_before_it_has_begun_it_ends_at_once_and_the_next_one_waits", func(t *testing.T) {
		in := &intake{orders: make(chan machine.Fetch, 1)}
		in.order(machine.Fetch{})
		in.cancelFetch(false)
		ctx, cancel := in.begin(context.Background())
		defer cancel()
		if ctx.Err() == nil {
			t.Error("the Fetch still waits after it was cancelled, and would delay a stop")
		}
		<-in.orders
		in.order(machine.Fetch{})
		ctx, cancel = in.begin(context.Background())
		defer cancel()
		if ctx.Err() != nil {
			t.Error("the next Fetch is cancelled before it has begun")
		}
	})
}
