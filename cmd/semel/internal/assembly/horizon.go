package assembly

import (
	"context"
	"fmt"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/source"
)

// Horizon asks the brokers of a consumer's source how late they can deliver a record again.
// It joins no group.
func (a *Assembly) Horizon(ctx context.Context, c *policy.Consumer) (source.Horizon, error) {
	src, err := a.source(c)
	if err != nil {
		return source.Horizon{}, err
	}
	defer src.Close(context.WithoutCancel(ctx))
	ask := src.Info().Horizon
	if ask == nil {
		return source.Horizon{}, fmt.Errorf("consumer %s: source %s does not say how long it keeps its messages", c.Name, c.From)
	}
	return ask(ctx)
}

// HasUnique reports whether the store has a constraint of this name that can decide what is a
// duplicate.
func (s *Store) HasUnique(ctx context.Context, constraint string) (bool, error) {
	there, err := s.hasUnique(ctx, constraint)
	return there, s.Failed(err)
}
