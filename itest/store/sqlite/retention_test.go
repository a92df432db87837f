package sqlite

import (
	"database/sql"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/store"
)

func TestWhatLiesAtTheLowWaterMark(t *testing.T) {
	t.Run("H2_is_kept_to_the_millisecond", func(t *testing.T) {
		db := openFile(t, newFile(t), pragmas)
		st := storeOn(t, db)
		scope, err := st.Scope(t.Context(), "billing", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		low := time.Date(2026, 1, 1, 11, 0, 0, 7_000_000, time.UTC)
		exec(t, db, "update semel_retention set progress_at = ?", low.Add(time.Hour).UnixMilli())
		for i, id := range []string{"0", "1", "2"} {
			exec(t, db, "insert into semel_markers (scope, id, outcome, version, at) values (?, ?, 1, 0, ?)", scope, []byte("\x00"+id), low.UnixMilli()+int64(i)-1)
		}
		if at, err := st.Advance(t.Context(), "billing"); err != nil || !at.Equal(low) {
			t.Fatalf("the low-water mark is %v, %v", at, err)
		}
		if r, err := st.Reap(t.Context(), store.Reaping{Consumer: "billing", Most: 10}); err != nil || r.Markers != 1 {
			t.Errorf("%+v was removed, %v", r, err)
		}
		aged := func(id string, at time.Time) store.Mark {
			return store.Mark{Scope: scope, ID: []byte(id), As: store.Applied, Age: at}
		}
		v := sqlsuite.Asked[*sql.Tx](t, st, aged("a", low), aged("b", low.Add(-time.Millisecond)), aged("1", low))
		if v[0].Kind != store.Fresh || v[1].Kind != store.Old || v[2].Kind != store.Seen {
			t.Errorf("the verdicts are %+v", v)
		}
	})
}
