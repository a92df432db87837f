package postgres

import (
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/newer"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/sqlstore"
)

// What a newer release wrote into the tables, as an administrator would see it.
func TestWhatANewerReleaseWroteIsHeld(t *testing.T) {
	s := newShop(t, openDB(t, services.Postgres(t)), sqlstore.Options{})
	store := s.store
	exec := func(text string) { s.exec(t, text) }
	exec("alter table in.semel_markers drop constraint known_outcomes")
	scope, err := store.Scope(t.Context(), "billing", "shop", 0)
	if err != nil {
		t.Fatal(err)
	}
	mark := func(id string, as semel.Outcome) contract.Mark {
		return contract.Mark{Scope: scope, ID: []byte(id), As: as}
	}
	b, _, err := store.Begin(t.Context(), contract.TxOptions{}, []contract.Mark{mark("a", semel.Parked), mark("b", semel.Applied)})
	if err != nil {
		t.Fatal(err)
	}
	row := contract.Row{Mark: 0, State: contract.StateParked, Message: &semel.Message{}}
	if r := b.Commit(t.Context(), contract.Ending{Rows: []contract.Row{row}}); r.Outcome != contract.Committed {
		t.Fatalf("%+v", r)
	}
	for _, outcome := range []string{"6", "257", "0", "-3"} {
		exec("update in.semel_markers set outcome = " + outcome)
		t.Run("trap_T104_a_marker_of_outcome_"+outcome, func(t *testing.T) {
			b, v, err := store.Begin(t.Context(), contract.TxOptions{}, []contract.Mark{mark("c", semel.Applied), mark("b", semel.Applied), mark("a", semel.Applied)})
			if err != nil {
				t.Fatal(err)
			}
			b.Rollback(t.Context())
			if v[0].Kind != contract.Fresh || v[1].Kind != contract.Newer || v[2].Kind != contract.Newer {
				t.Errorf("%v", v)
			}
			if m, there, err := store.Marker(t.Context(), semel.Key{Consumer: "billing", Source: "shop", ID: "b"}); !errors.Is(err, newer.Err) || there {
				t.Errorf("the marker is %+v, %v", m, err)
			}
			rows, err := store.Rows(t.Context(), contract.RowFilter{})
			if err != nil || len(rows) != 1 {
				t.Fatalf("%v, %v", rows, err)
			}
			number, revision := rows[0].Number, rows[0].Revision
			_, retried := store.BeginRow(t.Context(), contract.TxOptions{}, number, revision, contract.Act{Verb: "retry", Who: "ana"})
			discarded := store.Discard(t.Context(), number, revision, contract.Act{Verb: "discard", Who: "ana"})
			for _, err := range []error{retried, discarded} {
				if !errors.Is(err, newer.Err) || !errors.Is(err, semel.ErrState) {
					t.Errorf("acted on: %v", err)
				}
			}
		})
	}
	exec("update in.semel_markers set outcome = 1, version = 300")
	t.Run("trap_T104_a_marker_whose_fingerprint_is_of_an_unknown_version", func(t *testing.T) {
		b, v, err := store.Begin(t.Context(), contract.TxOptions{}, []contract.Mark{mark("b", semel.Applied)})
		if err != nil {
			t.Fatal(err)
		}
		b.Rollback(t.Context())
		if v[0].Kind != contract.Newer {
			t.Errorf("%v", v)
		}
	})
}
