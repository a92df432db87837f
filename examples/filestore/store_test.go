package filestore

import (
	"context"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/semel-go/semel/storetest"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Harness[*Tx]{Open: instance, Can: storetest.Abilities{OneWriter: true}})
}

func instance(t testing.TB) storetest.Instance[*Tx] {
	s := open(t, filepath.Join(t.TempDir(), "test.log"))
	return storetest.Instance[*Tx]{
		Store: s,
		Effect: func(_ context.Context, tx *Tx, name string) error {
			_, err := tx.Add(name, 1)
			return err
		},
		Count: func(t testing.TB, name string) int { return count(t, s, name) },
	}
}

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func count(t testing.TB, s *Store, name string) int {
	t.Helper()
	v, ok := s.Get(name)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(string(v))
	if err != nil {
		t.Error(err)
	}
	return n
}
