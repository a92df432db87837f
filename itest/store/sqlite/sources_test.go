package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/store"
)

func TestSourcesThatAProducerChooses(t *testing.T) {
	t.Run("D3_rows_of_many_sources_are_claimed_in_their_turn", func(t *testing.T) {
		db := openFile(t, newFile(t), pragmas)
		st := storeOn(t, db)
		exec(t, db, `with recursive n (n) as (select 1 union all select n + 1 from n where n < 1000)
insert into semel_scopes (consumer, source, generation) select cast('billing' as blob), cast('/shops/' || n as blob), 0 from n`)
		exec(t, db, `insert into semel_inbox (revision, scope, consumer, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, due_at, started, finished, repeated, first_error, last_error)
select 1, number, consumer, x'0061', x'', 0, false, 'RECEIVED', '', '', 0, 0, '', '', '', '{}', x'', 1, 1, 10000 - number, 0, 0, 0, '', ''
from semel_scopes where number % 100 = 0`)
		if p, err := st.Pending(t.Context(), "billing"); err != nil || p.Due != 10 {
			t.Errorf("%+v are pending, %v", p, err)
		}
		claim := func(consumer string, most int) (numbers []int64) {
			all, err := st.Claim(t.Context(), store.ClaimOptions{Consumer: consumer, Token: store.NewToken(), Most: most, Lease: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range all {
				numbers = append(numbers, c.Number)
			}
			return numbers
		}
		if got := claim("audit", 10); len(got) != 0 {
			t.Errorf("another consumer claimed %v", got)
		}
		// Rows with higher numbers have been due for longer.
		if got := fmt.Sprint(claim("billing", 5), claim("billing", 3), claim("billing", 10)); got != "[10 9 8 7 6] [5 4 3] [2 1]" {
			t.Errorf("claimed %s", got)
		}
	})
	t.Run("law_11_what_is_due_is_found_by_the_consumer_and_not_by_its_sources", func(t *testing.T) {
		db := openFile(t, newFile(t), pragmas)
		storeOn(t, db)
		rows, err := db.Query(`explain query plan select number from semel_inbox i where i.consumer = x'61'
  and i.state in ('RECEIVED', 'FAILED_RETRYABLE', 'IN_PROGRESS', 'BLOCKED') and i.due_at <= 7 order by i.due_at, i.number limit 10`)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		var plan strings.Builder
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			plan.WriteString(detail + "\n")
		}
		if text := plan.String(); rows.Err() != nil || !strings.Contains(text, "semel_inbox_due") || strings.Contains(text, "TEMP B-TREE") {
			t.Errorf("the plan is\n%s%v", text, rows.Err())
		}
	})
	t.Run("H3_sources_beyond_a_thousand_share_a_low_water_mark_too", func(t *testing.T) {
		db := openFile(t, newFile(t), pragmas)
		st := storeOn(t, db)
		if err := st.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		exec(t, db, `with recursive n (n) as (select 1 union all select n + 1 from n where n < 1500)
insert into semel_scopes (consumer, source, generation) select cast('billing' as blob), cast('/shops/' || n as blob), 0 from n`)
		lows := func() (least, most int64) {
			to, err := st.Advance(t.Context(), "billing")
			if err == nil {
				err = db.QueryRow("select coalesce(min(low), 0), coalesce(max(low), 0) from semel_scopes").Scan(&least, &most)
			}
			if err != nil || most > to.UnixMilli() {
				t.Errorf("the mark is %d behind the cutoff %v, %v", most, to, err)
			}
			return least, most
		}
		first, most := lows()
		if first == 0 || first != most {
			t.Errorf("the marks are %d to %d", first, most)
		}
		if err := st.Progressed(t.Context(), "billing", nil); err != nil {
			t.Fatal(err)
		}
		if again, _ := lows(); again != first {
			t.Errorf("the marks were raised by %d ms, which is less than a hundredth of an hour", again-first)
		}
		exec(t, db, "update semel_scopes set low = low - 60000")
		if _, most := lows(); most < first {
			t.Errorf("the marks were not raised by a minute")
		}
	})
}
