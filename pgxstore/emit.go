package pgxstore

import (
	"context"

	"github.com/semel-go/semel/contract"
)

var _ contract.Emitter = (*Store)(nil)

// Emit implements contract.Emitter.
func (t *tables) Emit(ctx context.Context, o contract.EmitOptions) (contract.Emitted, error) {
	return t.inner.Emit(ctx, o)
}
