package sqlsuite

import (
	"bytes"
	"context"
	"io"
	"sync"
	"testing"
)

// Migrator is a SQL store that can create its tables.
type Migrator interface {
	Migrate(ctx context.Context) (applied []string, err error)
	Check(ctx context.Context) error
	Print(to io.Writer) error
}

// MigrateTogether runs all migrators at the same time and returns the migrations that were applied.
func MigrateTogether(t testing.TB, all []Migrator) (applied []string) {
	t.Helper()
	var mu sync.Mutex // mu guards applied
	var ended sync.WaitGroup
	for _, m := range all {
		ended.Go(func() {
			own, err := m.Migrate(t.Context())
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			applied = append(applied, own...)
		})
	}
	ended.Wait()
	return applied
}

// MadeByHand runs the SQL text of Print, checks that the text creates the whole schema, and returns the text.
func MadeByHand(t testing.TB, m Migrator, exec func(text string)) string {
	t.Helper()
	var text bytes.Buffer
	if err := m.Print(&text); err != nil {
		t.Fatal(err)
	}
	exec(text.String())
	if err := m.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if applied, err := m.Migrate(t.Context()); err != nil || len(applied) != 0 {
		t.Errorf("applied %v, %v", applied, err)
	}
	return text.String()
}
