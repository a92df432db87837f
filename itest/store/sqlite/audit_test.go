package sqlite

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/store/sqlsuite"
)

func TestEachForgeryIsFoundInAFile(t *testing.T) {
	sqlsuite.Forgeries(t, func(t testing.TB) sqlsuite.Forged {
		db := openFile(t, newFile(t), pragmas+foreignKeys)
		s := storeOn(t, db)
		return sqlsuite.Forged{Store: s, Exec: func(t testing.TB, statement string) {
			t.Helper()
			for _, name := range []string{"acts_stay", "acts_remain", "seals_stay", "seals_remain"} {
				exec(t, db, "drop trigger if exists semel_"+name)
			}
			exec(t, db, strings.ReplaceAll(statement, "in.", ""))
		}}
	})
}

// If the process that extends the audit chain is killed between two steps, the database rolls back all lines that the
// process added.
func TestSealingThatIsKilledGoesOn(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines int
	}{
		{"G6_killed_before_the_first_line", 0}, {"G6_killed_between_lines", 3}, {"G6_killed_before_the_end_is_written", 5}, {"G6_killed_after_the_commit", sealedThen},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := newFile(t)
			db := openFile(t, path, pragmas+foreignKeys)
			s := storeOn(t, db)
			sqlsuite.Acted(t, s, 1, 2)
			sqlsuite.SealedAll(t, s, nil)
			sqlsuite.Acted(t, s, 3, 7)
			killWith(t, order{Path: path, Seal: true, Lines: c.lines})
			want := 5
			if c.lines == sealedThen {
				want = 0
			}
			if n := sqlsuite.SealedAll(t, s, nil); n != want {
				t.Errorf("%d lines are sealed after the kill, want %d", n, want)
			}
			if found, r := sqlsuite.AuditFindings(t, s, nil); len(found) > 0 || r.Lines != 7 {
				t.Errorf("%q in %d lines", found, r.Lines)
			}
			if done, err := s.Seal(t.Context(), admin.Sealing{Whole: true}); err != nil || done.Lines != 0 {
				t.Errorf("again: %+v, %v", done, err)
			}
		})
	}
}

// The number of lines in the audit chain after the commit.
const sealedThen = 100
