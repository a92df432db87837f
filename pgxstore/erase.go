package pgxstore

import (
	"context"

	"github.com/semel-go/semel/contract"
)

// Erase implements contract.Eraser.
func (t *tables) Erase(ctx context.Context, o contract.Erasing) (contract.Erased, error) {
	return t.inner.Erase(ctx, o)
}

// Scrub implements contract.Eraser: with whole it vacuums.
func (t *tables) Scrub(ctx context.Context, whole bool) error { return t.inner.Scrub(ctx, whole) }
