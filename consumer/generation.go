package consumer

import (
	"context"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/store"
)

// Generation says in which generation a consumer works. Everything that is kept of it (its
// markers, rows, versions, positions) stands under admin.GenerationName, so that nothing
// of one is found in another.
type Generation struct {
	// Number is 0 for the first, which has the consumer's own name.
	Number int64
	// Building: it is being built by a rebuild, and is not the active one.
	Building bool
}

// state is what the store must say of the generation while a batch works in it.
func (g *Generation) state() store.GenerationState {
	if g.Building {
		return store.GenerationBuilding
	}
	return store.GenerationActive
}

// checkGeneration reports what is wrong with the generation, and with a name that looks like
// that of one.
func (c *Config) checkGeneration(fault faultFunc) {
	if _, n := admin.GenerationOf(c.Name); n != 0 {
		fault("Name", "ends as the name of generation %d does; give it another name, or set Generation", n)
	}
	switch g := c.Generation; {
	case g == nil:
	case g.Number < 0:
		fault("Generation.Number", "is %d; it is 0 or more", g.Number)
	case g.Number == 0 && g.Building:
		fault("Generation.Building", "is true of generation 0, which is never built beside another")
	case !c.Strategy.marks() && g.Building:
		fault("Generation.Building", "is true, and Strategy is %v, which writes no markers: what the rebuild has applied would not be known after the switch", c.Strategy)
	}
}

// fitsGeneration reports that the store cannot hold batches to the generation.
func (c *settings) fitsGeneration(store any) error {
	if c.Generation == nil {
		return nil
	}
	if _, able := store.(admin.Generations); !able || c.way != byTransaction {
		return fmt.Errorf("Generation is set, and the store keeps none, or handlers call out of its transactions: %w", semel.ErrUnsupported)
	}
	return nil
}

// working is the generation that batches are held to.
func (c *settings) working() store.Working {
	if c.Generation == nil {
		return store.Working{}
	}
	return store.Working{Consumer: c.public, Number: c.Generation.Number, In: c.Generation.state()}
}

// generation is the number of the one that the consumer works in.
func (c *Config) generation() int64 {
	if c.Generation == nil {
		return 0
	}
	return c.Generation.Number
}

// controlled is the name by which operators want something of the consumer: that of a rebuild
// is its generation's, so that each can be paused by itself.
func (c *settings) controlled() string {
	if c.Generation != nil && !c.Generation.Building {
		return c.public
	}
	return c.Name
}

// ownTransactions refuses to mark in a transaction of the user's, which no switch waits for.
func (c *settings) ownTransactions() error {
	if c.Generation == nil {
		return nil
	}
	return fmt.Errorf("semel: consumer %q works in generations, and a switch would not wait for a transaction of yours; use Run or Process: %w", c.public, semel.ErrUnsupported)
}

// beginGenerations has the store know the consumer's first generation.
func (c *Consumer[Tx]) beginGenerations(ctx context.Context) error {
	if g := c.config.Generation; g == nil || g.Number != 0 {
		return nil
	}
	if err := c.store.(admin.Generations).BeginGenerations(ctx, c.config.public); err != nil {
		return fmt.Errorf("semel: consumer %q cannot start: %w", c.config.public, err)
	}
	return nil
}
