package pgxstore

import (
	"context"

	"github.com/semel-go/semel/internal/admin"
)

// Seal implements admin.Auditor: it seals acts of operators into the chain.
func (t *tables) Seal(ctx context.Context, o admin.Sealing) (admin.Sealed, error) {
	return t.inner.Seal(ctx, o)
}

// SealHead implements admin.Auditor: where the chain ends.
func (t *tables) SealHead(ctx context.Context) (admin.SealHead, error) {
	return t.inner.SealHead(ctx)
}

// Seals implements admin.Auditor: lines of the chain, each with its act as it stands now.
func (t *tables) Seals(ctx context.Context, after int64, limit int) ([]admin.AuditedSeal, error) {
	return t.inner.Seals(ctx, after, limit)
}

// AuditedActs implements admin.Auditor: acts, each with where it is sealed.
func (t *tables) AuditedActs(ctx context.Context, after int64, limit int) ([]admin.AuditedAct, error) {
	return t.inner.AuditedActs(ctx, after, limit)
}
