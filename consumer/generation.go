package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/control"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/internal/worker"
)

// Generation says in which generation a consumer works. All records of a generation (markers, rows, versions,
// positions) are stored under admin.GenerationName, so that the records of different generations are
// separate.
type Generation struct {
	// Number is the number of the generation. The first generation has the number 0 and the consumer's own
	// name.
	Number int64
	// Building means that a rebuild is filling the generation. A generation that is being built is not the active
	// generation.
	Building bool
}

// state returns the state that the generation must have while a batch works in it.
func (g *Generation) state() generations.State {
	if g.Building {
		return generations.Building
	}
	return generations.Active
}

// generation returns the number of the consumer's generation.
func (c *Config) generation() int64 {
	if c.Generation == nil {
		return 0
	}
	return c.Generation.Number
}

// unfencedAgain is the interval between checks whether a switch of generations has ended.
const unfencedAgain = 100 * time.Millisecond

// errTurned means that the consumer may no longer work in its generation.
var errTurned = errors.New("semel: the generation was switched, or is about to be")

// InGenerations runs a consumer in its active generation. InGenerations calls the function run with the active
// generation. This function must create the consumer with Config.Generation and a new source, and run the consumer
// until ctx ends. When a switch to another generation begins, InGenerations cancels the ctx of run, and run drains.
// After the switch, InGenerations calls run again with the new active generation. If the store does not respond during
// a switch, InGenerations asks the store again.
//
// InGenerations returns the result of run if run ended for a reason other than a switch, or nil if ctx has
// ended between two runs. An error before the first call of run means that the generations could not be read.
func InGenerations(ctx context.Context, st admin.Generations, name string, run func(ctx context.Context, g Generation) error) error {
	if err := st.BeginGenerations(ctx, name); err != nil {
		return fmt.Errorf("semel: consumer %q cannot start: %w", name, err)
	}
	for {
		active, err := awaitActive(ctx, st, name)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		turned, err := watched(ctx, func(ctx context.Context) bool {
			all, err := st.Generations(ctx, name)
			return err == nil && !mayWork(all, active, generations.Active, true)
		}, func(ctx context.Context) error { return run(ctx, Generation{Number: active}) })
		if !turned || ctx.Err() != nil || err != nil {
			return err
		}
	}
}

// Rebuild runs the rebuild of a generation. Rebuild calls the function run with the generation, as InGenerations does,
// and cancels the ctx of run when the generation becomes the active one or is dropped. Rebuild returns the last state
// of the generation. The state is generations.Building if run ended by itself or ctx ended. The field Building of g
// must be set.
func (g Generation) Rebuild(ctx context.Context, st admin.Generations, name string, run func(ctx context.Context, g Generation) error) (generations.State, error) {
	_, err := watched(ctx, func(ctx context.Context) bool {
		all, err := st.Generations(ctx, name)
		return err == nil && !mayWork(all, g.Number, generations.Building, false)
	}, func(ctx context.Context) error { return run(ctx, g) })
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), control.ReadWithin)
	defer cancel()
	all, asked := st.Generations(last, name)
	if asked != nil {
		return generations.Building, errors.Join(err, asked)
	}
	for _, kept := range all {
		if kept.Number == g.Number {
			return kept.State, err
		}
	}
	return generations.Building, errors.Join(err, fmt.Errorf("semel: consumer %q has no generation %d: %w", name, g.Number, semel.ErrState))
}

// mayWork reports whether the generation with the given number is in the state wanted. If the parameter unfenced is
// set, the result is true only if no process has announced a switch from this generation
// (admin.StoredGeneration.Fenced).
func mayWork(all []admin.StoredGeneration, number int64, wanted generations.State, unfenced bool) bool {
	for _, g := range all {
		if g.Number == number {
			return g.State == wanted && (!unfenced || g.Fenced == 0)
		}
	}
	return false
}

// awaitActive waits until no switch is in progress and returns the number of the active generation.
func awaitActive(ctx context.Context, st admin.Generations, name string) (int64, error) {
	for first := true; ; first = false {
		all, err := st.Generations(ctx, name)
		if err != nil && first {
			return 0, fmt.Errorf("semel: consumer %q: which generation is active is not known: %w", name, err)
		}
		for _, g := range all {
			if g.State == generations.Active && g.Fenced == 0 {
				return g.Number, nil
			}
		}
		if !timing.Wait(ctx, unfencedAgain) {
			return 0, ctx.Err()
		}
	}
}

// watched calls the function run. Until run returns, watched calls the function turned every few seconds. When turned
// returns true, watched cancels the context of run. The first result is true if watched cancelled this context.
func watched(ctx context.Context, turned func(context.Context) bool, run func(context.Context) error) (bool, error) {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching, done := context.WithCancel(ctx)
	defer done()
	var watcher worker.Group
	watcher.Go(func() {
		for timing.Wait(watching, control.ReadEvery) {
			if turned(watching) {
				cancel(errTurned)
				return
			}
		}
	})
	err := run(running)
	done()
	watcher.Wait()
	hasTurned := errors.Is(context.Cause(running), errTurned)
	if hasTurned && errors.Is(err, context.Canceled) { // run was cancelled during its start
		err = nil
	}
	return hasTurned, err
}
