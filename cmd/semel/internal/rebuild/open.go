package rebuild

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/replay"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/generations"
	"github.com/semel-go/semel/store"
)

// mostReplays is the maximum number of a consumer's replays that are read.
const mostReplays = 1000

// Open records a rebuild: first the generation, then the replay. If a killed process has opened a generation
// without recording the replay, Open uses the existing generation.
func Open(ctx context.Context, st Store, r admin.Replay, t store.Token, a store.Act) (admin.Replay, error) {
	if err := st.BeginGenerations(ctx, r.Consumer); err != nil {
		return r, err
	}
	number, err := st.OpenGeneration(ctx, r.Consumer, a)
	if errors.Is(err, semel.ErrState) {
		number, err = orphan(ctx, st, r.Consumer)
	}
	if err != nil {
		return r, err
	}
	r.Kind, r.Generation = admin.ReplayRebuild, number
	r.Number, err = st.NewReplay(ctx, r, t, replay.Lease, a)
	return r, err
}

// orphan returns the generation that is being built although no replay is recorded for it.
func orphan(ctx context.Context, st Store, name string) (int64, error) {
	all, err := st.Generations(ctx, name)
	if err != nil {
		return 0, err
	}
	known, err := st.ReplaysOf(ctx, name, mostReplays)
	if err != nil {
		return 0, err
	}
	for _, g := range all {
		if g.State != generations.Building {
			continue
		}
		for _, r := range known {
			if r.Kind == admin.ReplayRebuild && r.Generation == g.Number {
				return 0, fmt.Errorf("replay %d rebuilds generation %d already: resume it (--resume %d), switch to it, or drop it: %w", r.Number, g.Number, r.Number, semel.ErrState)
			}
		}
		return g.Number, nil
	}
	return 0, fmt.Errorf("another rebuild of consumer %s was begun and ended meanwhile; try again: %w", name, semel.ErrState)
}
