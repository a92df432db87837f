package sqlhandler

import (
	"strings"
	"testing"
)

func TestTheHeuristicOfNaturalIdempotency(t *testing.T) {
	for _, c := range []struct{ sql, want string }{
		{"update a set balance = balance + :y where id = :i", "computes column balance from itself"},
		{"update a set b = :y + b", "computes column b from itself"},
		{"update a set b = a.b - :y", "computes column b from itself"},
		{"update a set x = 1, b = coalesce(b, 0) + :y", "computes column b from itself"},
		{"update a set log = log || :line", "computes column log from itself"},
		{"update a set (b, c) = (b + 1, :c)", "computes column b from itself"},
		{"update a set \"B\" = \"B\" * 2", "computes column b from itself"},
		{"insert into a values (:i, :n) on conflict (i) do update set n = n + excluded.n", "computes column n from itself"},
		{"insert into a (b) values (:b)", "inserts without a conflict clause"},
		{"insert into a select :b where not exists (select 1 from a)", "inserts without a conflict clause"},
		{"with x as (select 1) insert into a select * from x", "inserts without a conflict clause"},

		{"update a set b = :b where id = :i", ""},
		{"update a set b = :b + :c where d = d + 1", ""},
		{"update a set b = max(b, :b)", ""},
		{"update a set b = c + 1", ""},
		{"delete from a where id = :i", ""},
		{"insert or ignore into a values (:i)", ""},
		{"insert or replace into a values (:i)", ""},
		{"replace into a values (:i)", ""},
		{"insert into a values (:i) on conflict do nothing", ""},
		{"insert into a values (:i, :v) on conflict (i) do update set v = excluded.v + 0", ""},
		{"insert into a values (:i) on duplicate key update v = :v", ""},
		{"select 'update a set b = b + 1'", ""},
		{"select '", ""},
	} {
		t.Run(c.sql, func(t *testing.T) {
			got := SQLite().NotNatural(c.sql)
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
