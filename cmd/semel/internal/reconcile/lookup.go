package reconcile

import (
	"context"
	"sync/atomic"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/worker"
)

// maxLookups is the maximum number of concurrent lookups.
const maxLookups = 8

// lookUp returns the outcome of each identity. If an identity has no marker, lookUp returns the outcome of
// the previous identity in formers. The slice formers may be nil. A previous identity without an id is not
// looked up.
func (c *Comparison) lookUp(ctx context.Context, keys, formers []semel.Key) ([]Outcome, error) {
	if c.Marker == nil {
		return nil, errUnasked
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	found := make([]Outcome, len(keys))
	var next atomic.Int64
	var group worker.Group
	for range min(maxLookups, len(keys)) {
		group.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(keys) {
					return
				}
				m, there, err := c.Marker(ctx, keys[i])
				if err == nil && !there && formers != nil && formers[i].ID != "" {
					m, there, err = c.Marker(ctx, formers[i])
				}
				if err != nil {
					cancel(err)
					return
				}
				if there {
					found[i] = OutcomeOf(m.Outcome)
				}
			}
		})
	}
	group.Wait()
	return found, context.Cause(ctx)
}
