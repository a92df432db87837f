package postgres

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/sqlstore"
)

func TestUnknownOutcomesAndStatesAreKeptOut(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	if _, err := s.store.Scope(t.Context(), "billing", "", 0); err != nil {
		t.Fatal(err)
	}
	t.Run("trap_T104_by_constraints_from_the_start", func(t *testing.T) {
		for what, statement := range map[string]string{
			"outcome": "insert into in.semel_markers (scope, at, outcome, version, id) values (1, now(), 6, 0, '\\x0062')",
			"state":   strings.NewReplacer("'RECEIVED'", "'ELSEWHERE'", "100000", "4").Replace(waitingRows),
		} {
			if _, err := s.db.Exec(s.inSchema(statement)); err == nil || !strings.Contains(err.Error(), "23514") {
				t.Errorf("an unknown %s is written: %v", what, err)
			}
		}
	})
}
