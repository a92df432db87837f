package sqlstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

func TestAppliedMigrations(t *testing.T) {
	known := []Migration{{Version: 1, Name: "first", Checksum: "a", SQL: "1"}, {Version: 3, Name: "third", Checksum: "c", SQL: "3"}}
	applied := func(all ...Migration) []Migration {
		for i := range all {
			all[i].AppliedAt = time.UnixMilli(1)
		}
		return all
	}
	t.Run("J2_a_number_that_no_migration_has_makes_none_lack", func(t *testing.T) {
		all, err := merge(known, applied(Migration{Version: 1, Checksum: "a"}, Migration{Version: 3, Checksum: "c"}))
		if err != nil || len(all) != 2 || all[0].AppliedAt.IsZero() || all[1].AppliedAt.IsZero() {
			t.Errorf("%+v, %v", all, err)
		}
	})
	t.Run("P1_what_a_newer_release_added_is_listed_and_accepted", func(t *testing.T) {
		all, err := merge(known, applied(Migration{Version: 1, Checksum: "a"}, Migration{Version: 2, Name: "second"}, Migration{Version: 999, Name: "later"}))
		if err != nil || len(all) != 4 || all[1].Name != "second" || !all[2].AppliedAt.IsZero() || all[3].SQL != "" {
			t.Errorf("%+v, %v", all, err)
		}
	})
	t.Run("P1_a_later_major_version_is_refused_with_the_remedy", func(t *testing.T) {
		all, err := merge(known, applied(Migration{Version: 1000, Name: "anew"}))
		if len(all) != 3 || !errors.Is(err, semel.ErrSchema) || !strings.Contains(err.Error(), "1000_anew") || !strings.Contains(err.Error(), "use the newer release") {
			t.Errorf("%+v, %v", all, err)
		}
	})
	t.Run("P1_this_release_works_with_an_earlier_major_version_that_it_knows", func(t *testing.T) {
		later := append(known[:2:2], Migration{Version: 1001, Name: "anew", Checksum: "d", SQL: "4"})
		if all, err := merge(later, applied(Migration{Version: 7, Name: "before"}, Migration{Version: 1001, Checksum: "d"}, Migration{Version: 1002, Name: "added"})); err != nil || len(all) != 5 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}
