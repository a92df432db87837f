//go:build unix

package neighbours

import (
	"context"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

// smallFeed has a share of each kind of message.
func smallFeed() Feed { return Feed{IDs: 1_200, Seed: 11} }

// neighbours builds the pinned commit's binary and the present one.
func neighbours(t *testing.T) (earlier, present Release) {
	t.Helper()
	earlier, present, err := Neighbours(t.Context(), Pinned, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return earlier, present
}

func inFile(t *testing.T, folder string) Store {
	t.Helper()
	s, err := SQLite(t.Context(), folder)
	return opened(t, s, err)
}

func inServer(t *testing.T, _ string) Store {
	t.Helper()
	s, err := Postgres(services.Postgres(t))
	return opened(t, s, err)
}

func opened(t *testing.T, s Store, err error) Store {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// prove runs two releases and prints the ledger.
func prove(t *testing.T, store func(*testing.T, string) Store, first, second Release) *Ledger {
	t.Helper()
	folder := t.TempDir()
	proof := Proof{First: first, Second: second, Store: store(t, folder), Feed: smallFeed(), Kills: 6, Folder: folder, Progress: t.Output()}
	ledger, err := proof.Run(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := ledger.Write(t.Output()); err != nil {
		t.Fatal(err)
	}
	return ledger
}

func TestNeighbouringReleasesShareAStore(t *testing.T) {
	earlier, present := neighbours(t)
	check := func(store func(*testing.T, string) Store, first, second Release) func(*testing.T) {
		return func(t *testing.T) {
			if err := prove(t, store, first, second).Fault(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Run("P1_in_turn_on_SQLite_the_earlier_release_first", check(inFile, earlier, present))
	t.Run("P1_in_turn_on_SQLite_the_present_release_first", check(inFile, present, earlier))
	t.Run("P1_at_once_on_PostgreSQL_the_earlier_release_first", check(inServer, earlier, present))
	t.Run("P1_at_once_on_PostgreSQL_the_present_release_first", check(inServer, present, earlier))
}
