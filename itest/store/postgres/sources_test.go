package postgres

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// manySources creates n sources of a consumer. Each hundredth source has a due row and markers.
func manySources(t *testing.T, s *fixture, n int) {
	t.Helper()
	s.exec(t, `insert into in.semel_scopes (consumer, source, generation) select 'billing', ('/shops/' || n)::bytea, 0 from generate_series(1, $1::int) n`, n)
	s.exec(t, `insert into in.semel_inbox (revision, scope, consumer, id, conflict, version, surrogate, state, reason, topic, partition, "offset",
  broker_id, type, schema, envelope, payload, received_at, changed_at, due_at, started, finished, repeated, first_error, last_error)
select 1, number, consumer, '\x0061', '', 0, false, 'RECEIVED', '', '', 0, 0, '', '', '', '{}', 'x', now(), now(), now() - number * interval '1 millisecond', 0, 0, 0, '', ''
from in.semel_scopes where number % 100 = 0`)
	s.exec(t, "insert into in.semel_markers (scope, id, outcome, version, at) select scope, id, 2, 0, now() from in.semel_inbox")
}

// blocksRead returns the number of blocks that a statement read, according to an analyzed plan. The result is the
// highest number in the plan, because the top step does not count the blocks of a change in a WITH clause.
func blocksRead(t *testing.T, plan string) (most int) {
	t.Helper()
	plan, _, _ = strings.Cut(plan, "Planning:") // on a new connection, planning also reads the catalogue
	for _, line := range regexp.MustCompile(`Buffers: .*`).FindAllString(plan, -1) {
		n := 0
		for _, m := range regexp.MustCompile(`(?:hit|read)=(\d+)`).FindAllStringSubmatch(line, -1) {
			blocks, _ := strconv.Atoi(m[1])
			n += blocks
		}
		most = max(most, n)
	}
	if most == 0 {
		t.Fatalf("the plan tells no blocks:\n%s", plan)
	}
	return most
}

func TestSourcesThatAProducerChooses(t *testing.T) {
	db := newDatabase(t)
	t.Run("law_11_a_claim_reads_what_it_takes_however_many_sources_its_consumer_has", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		manySources(t, s, 20_000)
		for _, table := range []string{"scopes", "inbox", "markers"} {
			s.exec(t, "analyze in.semel_"+table)
		}
		statements := sqlstore.Statements(s.store, sqlform.Revision12{})
		for _, c := range []struct {
			consumer string
			most     int
			blocks   int
		}{{"billing", 10, 1000}, {"nobody", 10, 50}} {
			text := plan(t, db, "explain (analyze, buffers) "+statements.Claim, true, []byte(c.consumer), int64(store.NewToken()), c.most, int64(0), int64(30_000), "")
			if n := blocksRead(t, text); n > c.blocks || strings.Contains(text, "Seq Scan on semel_scopes") || strings.Contains(text, "JIT") {
				t.Errorf("a claim of %d rows of %s read %d blocks of the database, want at most %d:\n%s", c.most, c.consumer, n, c.blocks, text)
			}
		}
		text := plan(t, db, "explain (analyze, buffers) "+statements.Pending, []byte("nobody"))
		if n := blocksRead(t, text); n > 50 {
			t.Errorf("counting the waiting rows of a consumer without rows read %d blocks:\n%s", n, text)
		}
	})
	t.Run("D3_rows_of_many_sources_are_claimed_in_their_turn", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		manySources(t, s, 1000)
		if p, err := s.store.Pending(t.Context(), "billing"); err != nil || p.Due != 10 {
			t.Errorf("%+v are pending, %v", p, err)
		}
		claim := func(consumer string, most int) (numbers []int64) {
			all, err := s.store.Claim(t.Context(), store.ClaimOptions{Consumer: consumer, Token: store.NewToken(), Most: most, Lease: time.Minute})
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
	t.Run("trap_T80_the_indexes_of_a_table_with_rows_are_built_beside_those_that_write", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		manySources(t, s, 10)
		s.execAll(t, []string{"drop index in.semel_inbox_due", "drop index in.semel_scopes_low"})
		if _, err := s.store.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, index := range []string{"in.semel_inbox_due", "in.semel_scopes_low"} {
			if !queryOne[bool](t, db, "select indisvalid from pg_index where indexrelid = $1::regclass", s.inSchema(index)) {
				t.Errorf("the index %s is not valid", index)
			}
		}
	})
	t.Run("law_11_a_new_source_reads_no_others", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		manySources(t, s, 20_000)
		s.exec(t, "update in.semel_scopes set low = now() - interval '1 day'")
		s.exec(t, "vacuum analyze in.semel_scopes")
		statements := sqlstore.Statements(s.store, sqlform.Revision12{})
		text := plan(t, db, "explain (analyze, buffers) "+statements.NewScope, []byte("billing"), []byte("/new"), 0)
		if n := blocksRead(t, text); n > 200 {
			t.Errorf("a new source read %d blocks:\n%s", n, text)
		}
		numbers, err := s.store.Scopes(t.Context(), "billing", []string{"/newer", "/shops/7", "/newest", "/newer"}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if low := queryOne[int](t, db, s.inSchema("select count(*) from in.semel_scopes where low is not null and number = any($1)"), numbers); low != 3 || slices.Contains(numbers, 0) {
			t.Errorf("of the scopes %v %d begin at the low-water mark of the others", numbers, low)
		}
	})
}

func TestTheReaperOfManySources(t *testing.T) {
	db := newDatabase(t)
	// old creates many sources with one marker each. The markers are two hours old and the retention is one
	// hour.
	old := func(t *testing.T, sources int) *fixture {
		s := newFixture(t, db, sqlstore.Options{})
		s.exec(t, `insert into in.semel_scopes (consumer, source, generation) select 'billing', ('/shops/' || n)::bytea, 0 from generate_series(1, $1::int) n`, sources)
		s.exec(t, `insert into in.semel_markers (scope, id, outcome, version, at) select number, '\x0061', 1, 0, now() - interval '2 hours' from in.semel_scopes`)
		if err := s.store.Retain(t.Context(), store.Retention{Consumer: "billing", Keep: time.Hour}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	t.Run("law_11_a_pass_that_finds_nothing_reads_and_writes_few_scopes", func(t *testing.T) {
		s := old(t, 20_000)
		s.exec(t, "delete from in.semel_markers where scope > 10")
		s.exec(t, "vacuum analyze in.semel_markers")
		s.exec(t, "vacuum analyze in.semel_scopes")
		s.readProgress(t)
		s.exec(t, "vacuum analyze in.semel_scopes")
		if err := s.store.Progressed(t.Context(), "billing", nil); err != nil { // Progressed advances the cutoff
			t.Fatal(err)
		}
		name := []byte("billing")
		if n := queryOne[int](t, db, s.inSchema("select count(distinct low) from in.semel_scopes")); n != 1 {
			t.Errorf("the scopes have %d low-water marks", n)
		}
		statements := sqlstore.Statements(s.store, sqlform.Revision12{})
		if text := plan(t, db, "explain (analyze, buffers) "+statements.Advance, name); blocksRead(t, text) > 500 {
			t.Errorf("a second later the marks are raised again:\n%s", text)
		}
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(t.Context(), statements.Patience, name); err != nil {
			t.Fatal(err)
		}
		for what, args := range map[string][]any{statements.Place: {name, 0}, statements.Reap: {name, "(0,0)", "(16,0)", 10}} {
			if text := plan(t, tx, "explain (analyze, buffers) "+what, args...); blocksRead(t, text) > 150 {
				t.Errorf("a slice of the reaper's read more than it looks at:\n%s", text)
			}
		}
	})
	t.Run("H3_nothing_is_removed_before_each_source_has_the_low_water_mark", func(t *testing.T) {
		s := old(t, 1500)
		s.readProgress(t)
		s.exec(t, "update in.semel_scopes set low = null where number = 700") // as if another process had just created this source
		if sum := s.runReaper(t, store.Reaping{Most: 1000}); sum.Markers != 0 || s.countMarkers(t, "billing") != 1500 {
			t.Errorf("it removed %+v, and a copy may come under a source that has no mark", sum)
		}
		s.exec(t, "update in.semel_scopes set low = now() - interval '1 day' where number = 700")
		if sum := s.runReaper(t, store.Reaping{Most: 1000}); sum.Markers != 0 {
			t.Errorf("it removed %+v, and a copy may come under a source whose mark is earlier", sum)
		}
		s.readProgress(t)
		if sum := s.runReaper(t, store.Reaping{Most: 1000}); sum.Markers != 1500 {
			t.Errorf("it removed %+v, want all of 1,500", sum)
		}
	})
}
