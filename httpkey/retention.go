package httpkey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/store"
)

const (
	sweepEvery = time.Minute
	// The number of keys that one call of the store reads.
	sweepMost = 500
	// The maximum duration of a pass.
	sweepTime = sweepEvery
)

// sweeper is implemented by a strategy (a way to store keys) whose expired keys Sweep removes.
type sweeper interface {
	sweep(ctx context.Context) error
}

// Sweep removes the keys of New that are older than Config.Keep, with their answers. Several processes may call Sweep;
// only one process at a time removes keys. With NewLeased, Sweep does nothing, because each claim removes some expired
// keys. If the store cannot remove markers, the error wraps semel.ErrUnsupported.
func (g *Guard) Sweep(ctx context.Context) error {
	s, sweeps := g.strategy.(sweeper)
	if !sweeps {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	if err := s.sweep(ctx); err != nil {
		return fmt.Errorf("httpkey: expired keys were not removed: %w", err)
	}
	return nil
}

// Run calls Sweep now and every minute until ctx ends. If not nil, the function failed is called with each error.
func (g *Guard) Run(ctx context.Context, failed func(error)) {
	for {
		if err := g.Sweep(ctx); err != nil && ctx.Err() == nil && failed != nil {
			failed(err)
		}
		if !timing.Wait(ctx, sweepEvery) {
			return
		}
	}
}

// sweep implements sweeper.
func (t *transactional[Tx]) sweep(ctx context.Context) error {
	reaper, able := t.store.(store.Reaper)
	if !able {
		return fmt.Errorf("the store removes no markers: %w", semel.ErrUnsupported)
	}
	c := &t.guard.config
	err := t.intern(ctx)
	if err == nil {
		err = reaper.Retain(ctx, store.Retention{Consumer: c.Name, Keep: c.Keep, Horizon: c.Retries, Why: "clients repeat requests for up to this time (Config.Retries)"})
	}
	if err == nil {
		err = reaper.Progressed(ctx, c.Name, nil)
	}
	if err == nil {
		_, err = reaper.Advance(ctx, c.Name)
	}
	for sum := (store.Reaped{}); err == nil; {
		o := store.Reaping{Consumer: c.Name, Most: sweepMost, After: sum.Next}
		var done store.Reaped
		if done, err = reaper.Reap(ctx, o); err == nil && sum.Add(o, done) {
			break
		}
	}
	return errors.Join(err, ctx.Err())
}
