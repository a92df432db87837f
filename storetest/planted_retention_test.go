package storetest_test

import (
	"context"

	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

// beginsAnew begins a pass anew where only bodies are left of it.
type beginsAnew struct{ *memstore.Store }

func (s beginsAnew) Reap(ctx context.Context, r store.Reaping) (store.Reaped, error) {
	r.After.Done = false
	return s.Store.Reap(ctx, r)
}
