package rebuild

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/replay"
	"github.com/semel-go/semel/contract"
)

// mostReplays is how many replays of a consumer are looked at.
const mostReplays = 1000

// Open writes a rebuild down: its generation, and then its replay. A generation that a killed
// process opened, of which no replay is known, is taken up.
func Open(ctx context.Context, store Store, r contract.Replay, t contract.Token, a contract.Act) (contract.Replay, error) {
	if err := store.BeginGenerations(ctx, r.Consumer); err != nil {
		return r, err
	}
	number, err := store.OpenGeneration(ctx, r.Consumer, a)
	if errors.Is(err, semel.ErrState) {
		number, err = orphan(ctx, store, r.Consumer)
	}
	if err != nil {
		return r, err
	}
	r.Kind, r.Generation = contract.ReplayRebuild, number
	r.Number, err = store.NewReplay(ctx, r, t, replay.Lease, a)
	return r, err
}

// orphan is the generation of a consumer that is being built and of which no replay is known.
func orphan(ctx context.Context, store Store, name string) (int64, error) {
	all, err := store.Generations(ctx, name)
	if err != nil {
		return 0, err
	}
	known, err := store.ReplaysOf(ctx, name, mostReplays)
	if err != nil {
		return 0, err
	}
	for _, g := range all {
		if g.State != contract.GenerationBuilding {
			continue
		}
		for _, r := range known {
			if r.Kind == contract.ReplayRebuild && r.Generation == g.Number {
				return 0, fmt.Errorf("replay %d rebuilds generation %d already: go on with it (--resume %d), switch to it, or drop it: %w", r.Number, g.Number, r.Number, semel.ErrState)
			}
		}
		return g.Number, nil
	}
	return 0, fmt.Errorf("another rebuild of consumer %s was begun and ended meanwhile; try again: %w", name, semel.ErrState)
}
