package kafka

import (
	"context"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
)

func TestOwnersThatChange(t *testing.T) {
	bubble(t, "trap_26_an_owner_that_finishes_after_a_rebalance_doubles_nothing_and_commits_nothing", func(t *testing.T) {
		w := newWorld(t, 1)
		ids := numbered("m", 1, 20)
		w.publish(0, ids...)
		began, goOn := make(chan bool, 100), make(chan bool)
		old := w.start(func(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
			began <- true
			<-goOn
			return count(ctx, tx, m)
		}, nil, nil)
		<-began
		old.wire.freeze() // longer than the session
		fresh := w.start(count, nil, nil)
		w.settles(5 * time.Minute)
		_ = fresh
		old.wire.thaw()
		close(goOn)
		pass(time.Minute)
		w.once(ids...)
		w.settles(0)
	})
}
