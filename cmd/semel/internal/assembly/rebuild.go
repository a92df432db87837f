package assembly

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/rebuild"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
)

// Rebuilder makes the consumer of a rebuild, whose messages are part of its replay. It reads
// the whole of the source, and follows it.
func (a *Assembly) Rebuilder(ctx context.Context, c *policy.Consumer, r semel.Replay) (*Runner, error) {
	a.options.Replay = &r
	one, err := a.makeIn(ctx, c, consumer.Generation{Number: r.Generation, Building: true})
	if err != nil {
		return nil, err
	}
	return a.runner(c, one.Consumer, one.source), nil
}

// Far says how far a rebuild of the consumer has read its source. Call close after use.
func (a *Assembly) Far(c *policy.Consumer, generation int64) (far rebuild.Far, close func(), err error) {
	own := *c
	own.In = &consumer.Generation{Number: generation, Building: true}
	source := a.policy.Source(c.From)
	if source.File != nil {
		if source.File.Path == shape.Stdin {
			return nil, nil, fmt.Errorf("source %s is the standard input, which nobody can read twice", source.Name)
		}
		return &rebuild.File{Path: source.File.Path, Lane: a.lane(source.File.Path), Positions: a.store(c.Store), Name: admin.GenerationName(c.Name, generation)}, func() {}, nil
	}
	recovery, err := a.Recovery(&own)
	if err != nil {
		return nil, nil, err
	}
	return &rebuild.Topics{Recovery: recovery}, recovery.Close, nil
}

// StoreOf is the opened store of a consumer.
func (a *Assembly) StoreOf(c *policy.Consumer) *Store { return a.store(c.Store) }
