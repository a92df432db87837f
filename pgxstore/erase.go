package pgxstore

import (
	"context"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore"
)

// Erase implements admin.Eraser.
func (t *tables) Erase(ctx context.Context, o admin.Erasing) (admin.Erased, error) {
	return t.inner.Erase(ctx, o)
}

// Scrub implements admin.Eraser: with whole it vacuums.
func (t *tables) Scrub(ctx context.Context, whole bool) error { return t.inner.Scrub(ctx, whole) }

// crypt is how what is kept of messages is encrypted.
func (t *tables) crypt() sqlform.Crypt { return sqlstore.Crypt(t.inner) }
