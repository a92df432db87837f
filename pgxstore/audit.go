package pgxstore

import (
	"context"

	"github.com/semel-go/semel/contract"
)

// Seal implements contract.Auditor: it seals acts of operators into the chain.
func (t *tables) Seal(ctx context.Context, o contract.Sealing) (contract.Sealed, error) {
	return t.inner.Seal(ctx, o)
}

// SealHead implements contract.Auditor: where the chain ends.
func (t *tables) SealHead(ctx context.Context) (contract.SealHead, error) {
	return t.inner.SealHead(ctx)
}

// Seals implements contract.Auditor: lines of the chain, each with its act as it stands now.
func (t *tables) Seals(ctx context.Context, after int64, limit int) ([]contract.AuditedSeal, error) {
	return t.inner.Seals(ctx, after, limit)
}

// AuditedActs implements contract.Auditor: acts, each with where it is sealed.
func (t *tables) AuditedActs(ctx context.Context, after int64, limit int) ([]contract.AuditedAct, error) {
	return t.inner.AuditedActs(ctx, after, limit)
}
