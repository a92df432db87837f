package postgres

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/contract"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore"
)

// manySources has a consumer with so many sources, of which each hundredth has a row that is
// due, and with markers.
func manySources(t *testing.T, s *shop, n int) {
	t.Helper()
	s.exec(t, `insert into in.semel_scopes (consumer, source, generation) select 'billing', ('/shops/' || n)::bytea, 0 from generate_series(1, $1::int) n`, n)
	s.exec(t, `insert into in.semel_inbox (revision, scope, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, due_at, started, finished, repeated, first_error, last_error)
select 1, number, '\x0061', '', 0, false, 'RECEIVED', '', '', 0, 0, '', '', '', '{}', 'x', now(), now(), now() - number * interval '1 millisecond', 0, 0, 0, '', ''
from in.semel_scopes where number % 100 = 0`)
	s.exec(t, "insert into in.semel_markers (scope, id, outcome, version, at) select scope, id, 2, 0, now() from in.semel_inbox")
}

// blocksRead are the blocks that the whole of an analyzed plan read.
func blocksRead(t *testing.T, plan string) (n int) {
	t.Helper()
	first := regexp.MustCompile(`Buffers: .*`).FindString(plan)
	for _, m := range regexp.MustCompile(`(?:hit|read)=(\d+)`).FindAllStringSubmatch(first, -1) {
		blocks, _ := strconv.Atoi(m[1])
		n += blocks
	}
	if n == 0 {
		t.Fatalf("the plan tells no blocks:\n%s", plan)
	}
	return n
}

func TestSourcesThatAProducerChooses(t *testing.T) {
	db := fresh(t)
	t.Run("law_11_a_claim_reads_what_it_takes_however_many_sources_its_consumer_has", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		manySources(t, s, 20_000)
		if _, err := s.store.Migrate(t.Context()); err != nil { // which names rows of an earlier release
			t.Fatal(err)
		}
		for _, table := range []string{"scopes", "inbox", "markers"} {
			s.exec(t, "analyze in.semel_"+table)
		}
		statements := sqlstore.Statements(s.store, sqlform.Revision11{})
		for _, c := range []struct {
			consumer string
			most     int
			blocks   int
		}{{"billing", 10, 1000}, {"nobody", 10, 50}} {
			text := plan(t, db, "explain (analyze, buffers) "+statements.Claim, true, []byte(c.consumer), int64(contract.NewToken()), c.most, int64(0), int64(30_000), "")
			if n := blocksRead(t, text); n > c.blocks || strings.Contains(text, "Seq Scan on semel_scopes") || strings.Contains(text, "JIT") {
				t.Errorf("a claim of %d rows of %s read %d blocks of the database, want at most %d:\n%s", c.most, c.consumer, n, c.blocks, text)
			}
		}
		text := plan(t, db, "explain (analyze, buffers) "+statements.Pending, []byte("nobody"))
		if n := blocksRead(t, text); n > 50 {
			t.Errorf("to count what waits of nobody it read %d blocks:\n%s", n, text)
		}
	})
	t.Run("D3_rows_that_an_earlier_release_wrote_are_claimed_in_their_turn", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		manySources(t, s, 1000) // the consumer of its rows is empty
		s.exec(t, "update in.semel_inbox set consumer = 'billing' where number in (2, 4, 6)")
		if p, err := s.store.Pending(t.Context(), "billing"); err != nil || p.Due != 10 {
			t.Errorf("%+v are pending, %v", p, err)
		}
		claim := func(consumer string, most int) (numbers []int64) {
			all, err := s.store.Claim(t.Context(), contract.ClaimOptions{Consumer: consumer, Token: contract.NewToken(), Most: most, Lease: time.Minute})
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
		// Those of later numbers are due for longer.
		if got := fmt.Sprint(claim("billing", 5), claim("billing", 3), claim("billing", 10)); got != "[10 9 8 7 6] [5 4 3] [2 1]" {
			t.Errorf("claimed %s", got)
		}
		if left := one[int](t, db, s.in("select count(*) from in.semel_inbox where consumer = ''")); left != 0 {
			t.Errorf("%d rows that were claimed have no consumer", left)
		}
	})
	t.Run("law_11_a_new_source_reads_no_others", func(t *testing.T) {
		s := newShop(t, db, sqlstore.Options{})
		manySources(t, s, 20_000)
		s.exec(t, "update in.semel_scopes set low = now() - interval '1 day'")
		s.exec(t, "vacuum analyze in.semel_scopes")
		statements := sqlstore.Statements(s.store, sqlform.Revision11{})
		text := plan(t, db, "explain (analyze, buffers) "+statements.NewScope, []byte("billing"), []byte("/new"), 0)
		if n := blocksRead(t, text); n > 200 {
			t.Errorf("a new source read %d blocks:\n%s", n, text)
		}
		numbers, err := s.store.Scopes(t.Context(), "billing", []string{"/newer", "/shops/7", "/newest", "/newer"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if low := one[int](t, db, s.in("select count(*) from in.semel_scopes where low is not null and number = any($1)"), numbers); low != 3 || slices.Contains(numbers, 0) {
			t.Errorf("of the scopes %v %d begin at the low-water mark of the others", numbers, low)
		}
	})
}
