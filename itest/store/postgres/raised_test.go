package postgres

import (
	"testing"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
)

func TestACommitThatATriggerRefusesWithAnyCode(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	s.execAll(t, sqlsuite.Late)
	for _, code := range []string{"XX000", "58030", "F0000", "08006", "57P01"} {
		t.Run("trap_91_an_ERROR_of_COMMIT_with_an_idle_connection_is_a_rollback/"+code, func(t *testing.T) {
			sqlsuite.RefusedAtCommit(t, s.Instance, s.inSchema, code)
		})
	}
}
