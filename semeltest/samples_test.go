package semeltest_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel/internal/samplehandlers"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/semeltest"
)

// memory returns tables in memory.
func memory() samplehandlers.Tables[*memstore.Tx] {
	st := memstore.New()
	var mu sync.Mutex
	names := map[string]bool{} // guarded by mu
	used := func(name string) string {
		mu.Lock()
		defer mu.Unlock()
		names[name] = true
		return name
	}
	return samplehandlers.Tables[*memstore.Tx]{
		Store: st,
		Add:   func(_ context.Context, tx *memstore.Tx, name string, n int64) error { return tx.Add(used(name), n) },
		Set: func(_ context.Context, tx *memstore.Tx, name, value string) error {
			return tx.Set(used(name), []byte(value))
		},
		Get: func(_ context.Context, tx *memstore.Tx, name string) (string, error) {
			value, err := tx.Get(name)
			return string(value), err
		},
		All: func(context.Context) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			var lines []string
			for name := range names {
				if value := st.Get(name); value != nil {
					lines = append(lines, name+" "+string(value))
				}
			}
			slices.Sort(lines)
			return strings.Join(lines, "\n"), nil
		},
	}
}

func examine(t *testing.T, s samplehandlers.Sample[*memstore.Tx]) []semeltest.Found {
	return semeltest.Examine(t, func(t *testing.T) semeltest.Handler[*memstore.Tx] { return s.Handler(t, memory()) })
}

func TestTheFirstFailedSubtestNamesTheFault(t *testing.T) {
	for _, s := range samplehandlers.Faulty(memory()) {
		t.Run(strings.ReplaceAll(s.Name, " ", "_"), func(t *testing.T) {
			for _, f := range examine(t, s) {
				if f.Err == nil || f.Skipped {
					continue
				}
				if f.Subtest != s.In || !strings.Contains(f.Err.Error(), s.Says) {
					t.Errorf("found first in %q: %v\nwant in %q: … %s …", f.Subtest, f.Err, s.In, s.Says)
				}
				return
			}
			t.Error("no subtest failed")
		})
	}
}

func TestAHandlerWithoutAFaultPasses(t *testing.T) {
	for _, s := range samplehandlers.Good[*memstore.Tx]() {
		t.Run(strings.ReplaceAll(s.Name, " ", "_"), func(t *testing.T) {
			for _, f := range examine(t, s) {
				if f.Err != nil && !f.Skipped {
					t.Errorf("false alarm in %q: %v", f.Subtest, f.Err)
				}
			}
		})
	}
}
