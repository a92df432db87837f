package handlers

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel/memstore"
)

// memory is like sqliteTables, but for a store in memory.
func memory(testing.TB) func(t testing.TB) tables[*memstore.Tx] {
	return func(testing.TB) tables[*memstore.Tx] {
		n := &names{store: memstore.New(), used: map[string]bool{}}
		return tables[*memstore.Tx]{
			Store: n.store,
			Add: func(_ context.Context, tx *memstore.Tx, name string, k int64) error {
				n.use(name)
				return tx.Add(name, k)
			},
			Set: func(_ context.Context, tx *memstore.Tx, name, value string) error {
				n.use(name)
				return tx.Set(name, []byte(value))
			},
			Get: func(_ context.Context, tx *memstore.Tx, name string) (string, error) {
				value, err := tx.Get(name)
				return string(value), err
			},
			All: n.all,
		}
	}
}

// names records which names the handlers have used.
type names struct {
	store *memstore.Store
	mu    sync.Mutex
	used  map[string]bool // mu guards used
}

func (n *names) use(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.used[name] = true
}

func (n *names) all(context.Context) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var lines []string
	for name := range n.used {
		if value := n.store.Get(name); value != nil {
			lines = append(lines, name+" "+string(value))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}
