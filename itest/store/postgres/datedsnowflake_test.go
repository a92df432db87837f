package postgres

import (
	"strconv"
	"testing"

	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// snowflake returns an id whose time is dayStart(days).
func snowflake(days int, n int64) string {
	const epoch = 1288834974657
	ms := dayStart(days).UnixMilli() - epoch
	return strconv.FormatInt(ms<<22|n, 10)
}

func TestSnowflakesAreRoutedByTheirTime(t *testing.T) {
	s := newFixture(t, newDatabase(t), sqlstore.Options{})
	sqlsuite.Today(t)
	st, err := s.store.Dated(t.Context(), sqlstore.Dated{Consumer: "billing", IDTime: identity.Snowflake, Back: 6})
	if err != nil {
		t.Fatal(err)
	}
	s.store, s.Instance.Store = st, st
	s.setRetention(t, 2*aDay)
	t.Run("trap_8_each_lies_in_its_day", func(t *testing.T) {
		for day := -6; day <= 3; day++ {
			wantVerdicts(t, s.processAll(t, store.Applied, snowflake(day, 1)), isFresh)
			name := "in.semel_markers_1_" + dayStart(day).Format("20060102")
			if n := queryOne[int](t, s.db, s.inSchema("select count(*) from "+name)); n != 1 {
				t.Errorf("%d markers lie in day %d", n, day)
			}
		}
	})
	t.Run("trap_88_ten_years_ago_or_ahead_is_not_fresh", func(t *testing.T) {
		v := s.processAll(t, store.Applied, snowflake(3650, 1), snowflake(-3650, 1))
		if v[0] != isAhead || v[1].Kind != store.Old { // the time of an id with fewer digits may seem to lie in the future
			t.Errorf("the verdicts are %+v", v)
		}
	})
	t.Run("H3_a_copy_of_a_dropped_day_is_never_fresh", func(t *testing.T) {
		if r := s.pass(t); r.Days != 4 {
			t.Errorf("the pass removed %+v", r)
		}
		wantVerdicts(t, s.processAll(t, store.Applied, snowflake(-6, 1), snowflake(-3, 1), snowflake(-1, 1)), isOld, isOld, isApplied)
	})
	t.Run("H3_only_canonical_decimals_are_of_the_kind", func(t *testing.T) {
		fits := s.Instance.Store.Limits().FitIdentity
		for _, id := range []string{"", "1", "0" + snowflake(0, 1), "9223372036854775808", "-" + snowflake(0, 1), "12e17"} {
			if _, err := fits("shop", id); err == nil {
				t.Errorf("%q is fit", id)
			}
		}
		if id, err := fits("shop", snowflake(0, 1)); err != nil || id != snowflake(0, 1) {
			t.Errorf("it is spelled %q, %v", id, err)
		}
	})
}
