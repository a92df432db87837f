package pgxstore

import (
	"context"

	"github.com/semel-go/semel/internal/admin"
)

var _ admin.Emitter = (*Store)(nil)

// Emit implements admin.Emitter.
func (t *tables) Emit(ctx context.Context, o admin.EmitOptions) (admin.Emitted, error) {
	return t.inner.Emit(ctx, o)
}
