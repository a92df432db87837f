//go:build unix

package upgrade

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
)

// The folder with the binaries of this test run.
var built string

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "neighbours-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// buildOnce builds the binaries of the pinned commit and of the current tree.
var buildOnce = sync.OnceValues(func() ([2]Release, error) {
	earlier, present, err := Neighbours(context.Background(), Pinned, built)
	return [2]Release{earlier, present}, err
})

func neighbourReleases(t *testing.T) (earlier, present Release) {
	t.Helper()
	both := must.Get(buildOnce())(t)
	return both[0], both[1]
}

// opener opens a new store for a run.
type opener func(t *testing.T, folder string) Store

func newFileStore(t *testing.T, folder string) Store {
	t.Helper()
	s, err := SQLite(t.Context(), folder)
	return requireStore(t, s, err)
}

func newServerStore(t *testing.T, _ string) Store {
	t.Helper()
	s, err := Postgres(services.Postgres(t))
	return requireStore(t, s, err)
}

func requireStore(t *testing.T, s Store, err error) Store {
	t.Helper()
	must.OK(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// prove runs two releases that read files, and prints the ledger.
func prove(t *testing.T, open opener, first, second Release, ids, kills int) Ledger {
	t.Helper()
	s := proof.InTest(t)
	return ledgerOf(Proof{First: first, Second: second, Store: open(t, s.Folder), Source: Files(s.Folder), Feed: Feed{IDs: ids, Seed: 11}, Kills: kills, Stage: s})
}

// ledgerOf runs the fault test and prints the ledger.
func ledgerOf(p Proof) Ledger {
	p.T.Helper()
	ledger := proof.Prove(p.Stage, p.Run)
	must.OK(p.T, proof.Print(p.T.Output(), ledger, true))
	return ledger
}

func TestNeighbouringReleasesShareAStore(t *testing.T) {
	earlier, present := neighbourReleases(t)
	check := func(open opener, first, second Release) func(*testing.T) {
		return func(t *testing.T) {
			t.Parallel() // the cases spend most of their time waiting for the disk
			if err := prove(t, open, first, second, 1_200, 6).Fault(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Run("P1_in_turn_on_SQLite_the_earlier_release_first", check(newFileStore, earlier, present))
	t.Run("P1_in_turn_on_SQLite_the_present_release_first", check(newFileStore, present, earlier))
	t.Run("P1_at_once_on_PostgreSQL_the_earlier_release_first", check(newServerStore, earlier, present))
	t.Run("P1_at_once_on_PostgreSQL_the_present_release_first", check(newServerStore, present, earlier))
	group := func(first, second Release) func(*testing.T) {
		return func(t *testing.T) {
			t.Parallel()
			p := Proof{First: first, Second: second, Store: newServerStore(t, ""), Source: Topic(t), Feed: Feed{IDs: 1_200, Seed: 11}, Kills: 4, Stage: proof.InTest(t)}
			if err := ledgerOf(p).Fault(); err != nil {
				t.Error(err)
			}
		}
	}
	t.Run("P1_in_one_group_on_Kafka_the_earlier_release_first", group(earlier, present))
	t.Run("P1_in_one_group_on_Kafka_the_present_release_first", group(present, earlier))
}
