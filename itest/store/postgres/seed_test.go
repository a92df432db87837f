package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

// olds contains the possible types of an id column, each with a value of the column and the id of the message for this
// value.
var olds = []struct{ column, value, id string }{
	{"text", "'ä/7'", "ä/7"},
	{"varchar(40)", "'order-7'", "order-7"},
	{"char(10)", "'order-8'", "order-8"},
	{"uuid", "'018F3A2B-0000-7000-8000-00000000000A'", "018f3a2b-0000-7000-8000-00000000000a"},
	{"bytea", `'\x00ff07'`, "\x00\xff\x07"},
	{"bigint", "-9007199254740993", "-9007199254740993"},
	{"integer", "7", "7"},
}

// verdict asks the store whether an id is new or a duplicate, and rolls back.
func (s *fixture) verdict(t testing.TB, id string) store.Verdict {
	t.Helper()
	b, v := s.begin(t, store.TxOptions{}, s.makeMarks(t, id))
	b.Rollback(t.Context())
	return v[0]
}

func (s *fixture) seed(t testing.TB, o sqlstore.Seed) sqlstore.Seeded {
	t.Helper()
	o.Consumer, o.Table = "billing", s.inSchema(o.Table)
	sum, err := s.store.Seed(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return sum
}

func TestSeeding(t *testing.T) {
	db := newDatabase(t)
	t.Run("J2_ids_of_an_old_table_become_markers", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		for i, old := range olds {
			table := fmt.Sprintf("in.old%d", i)
			s.exec(t, "create table "+table+` ("the Id" `+old.column+" primary key)")
			s.exec(t, "insert into "+table+" values ("+old.value+")")
			if sum := s.seed(t, sqlstore.Seed{Table: table, ID: "the Id"}); sum != (sqlstore.Seeded{Read: 1, Written: 1}) {
				t.Errorf("%s: %+v", old.column, sum)
			}
			if v := s.verdict(t, old.id); !v.Already(store.Applied) {
				t.Errorf("%s: the verdict on %q is %s", old.column, old.id, v)
			}
		}
	})
	t.Run("J2_seeding_again_changes_no_marker", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		s.expectWorks(t, s.makeMarks(t, "5"))
		s.exec(t, "create table in.old as select n::text as id from generate_series(1, 10) n union all select null union all select ''")
		at := queryOne[string](t, db, s.inSchema("select string_agg(at::text, ',') from in.semel_markers"))
		for range 2 {
			s.seed(t, sqlstore.Seed{Table: "in.old", ID: "id"})
		}
		if sum := s.seed(t, sqlstore.Seed{Table: "in.old", ID: "id"}); sum != (sqlstore.Seeded{Read: 11, Unusable: 1}) {
			t.Errorf("the third time: %+v", sum)
		}
		if n := queryOne[int](t, db, s.inSchema("select count(*) from in.semel_markers where at::text = $1"), at); n != 1 {
			t.Error("the marker that was there has changed")
		}
	})
	t.Run("J2_a_condition_chooses_rows_and_a_source_belongs_to_the_identity", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		s.exec(t, "create table in.old as select n as id, case when n % 2 = 0 then 'done' end as state from generate_series(1, 10) n")
		sum := s.seed(t, sqlstore.Seed{Table: "in.old", ID: "id", Where: "state = 'done' -- {table}", Source: "shop"})
		if sum.Written != 5 {
			t.Errorf("%+v", sum)
		}
		if v := s.verdict(t, "2"); v.Kind != store.Fresh {
			t.Errorf("another source's verdict is %s", v)
		}
		if n := queryOne[int](t, db, s.inSchema("select count(*) from in.semel_markers_readable where source = 'shop' and id = '2'")); n != 1 {
			t.Error("the source's own marker is missing")
		}
	})
	t.Run("J2_an_interrupted_seeding_goes_on_where_it_stopped", func(t *testing.T) { interruptedSeeding(t, db) })
	t.Run("J2_seeding_beside_a_consumer_harms_neither", func(t *testing.T) { seedingBeside(t, db) })
	t.Run("J2_ids_are_read_in_the_order_of_their_collation", func(t *testing.T) {
		s := newFixture(t, db, sqlstore.Options{})
		s.exec(t, `create table in.old (id text collate "und-x-icu" primary key)`)
		s.exec(t, "insert into in.old values ('a'), ('B'), ('c'), ('D'), ('ä'), ('é'), ('F'), ('_'), ('1')")
		if sum := s.seed(t, sqlstore.Seed{Table: "in.old", ID: "id", Batch: 1}); sum.Read != 9 || sum.Written != 9 {
			t.Errorf("%+v of 9", sum)
		}
	})
	t.Run("J2_what_cannot_be_seeded_is_refused_with_a_remedy", func(t *testing.T) { unseedable(t, db) })
}

func interruptedSeeding(t *testing.T, db *sql.DB) {
	s := newFixture(t, db, sqlstore.Options{})
	s.exec(t, "create table in.old as select gen_random_uuid() as id from generate_series(1, 1000)")
	o := sqlstore.Seed{Consumer: "billing", Table: s.inSchema("in.old"), ID: "id", Batch: 100}
	for stops := 1; stops <= 3; stops++ {
		ctx, stop := context.WithCancel(t.Context())
		o.Progress = func(n sqlstore.Seeded) {
			if n.Read == int64(stops)*300 {
				stop()
			}
		}
		sum, err := s.store.Seed(ctx, o)
		if !errors.Is(err, context.Canceled) || sum.Read != int64(stops)*300 || sum.Resumed != (stops > 1) {
			t.Fatalf("stop %d: %+v, %v", stops, sum, err)
		}
	}
	o.Progress = nil
	sum, err := s.store.Seed(t.Context(), o)
	if err != nil || sum != (sqlstore.Seeded{Read: 1000, Written: 1000, Resumed: true}) {
		t.Errorf("%+v, %v", sum, err)
	}
	if n := queryOne[int](t, db, s.inSchema("select count(*) from in.semel_markers_readable m join in.old o on o.id::text = m.id where outcome = 'applied'")); n != 1000 {
		t.Errorf("%d markers", n)
	}
	if sum, err = s.store.Seed(t.Context(), o); err != nil || sum != (sqlstore.Seeded{Read: 1000}) {
		t.Errorf("after the end it begins anew: %+v, %v", sum, err)
	}
}

// seedingBeside checks seeding (which writes markers for messages that were processed without Semel) while a consumer
// runs. After an id is seeded, a message with this id has no effect. Seeding waits for a message that a consumer is
// processing.
func seedingBeside(t *testing.T, db *sql.DB) {
	s := newFixture(t, db, sqlstore.Options{})
	s.exec(t, "create table in.old as select lpad(n::text, 4, '0') as id from generate_series(0, 999) n")
	inFlight, _ := s.begin(t, store.TxOptions{}, s.makeMarks(t, "0500"))
	var beside sync.WaitGroup
	beside.Go(func() {
		waitTrue(t, db, s.inSchema("select exists (select 1 from pg_stat_activity where datname = current_database() and wait_event = 'transactionid')"))
		if v := s.verdict(t, "0007"); !v.Already(store.Applied) {
			t.Errorf("the verdict on a seeded id is %s", v)
		}
		if r := inFlight.Commit(context.WithoutCancel(t.Context()), store.Ending{}); r.Outcome != store.Committed {
			t.Errorf("the batch in flight: %+v", r)
		}
	})
	sum := s.seed(t, sqlstore.Seed{Table: "in.old", ID: "id", Batch: 50})
	beside.Wait()
	if sum != (sqlstore.Seeded{Read: 1000, Written: 999}) {
		t.Errorf("%+v", sum)
	}
}

func unseedable(t *testing.T, db *sql.DB) {
	s := newFixture(t, db, sqlstore.Options{})
	s.exec(t, "create table in.old (id text, box jsonb)")
	for _, c := range []struct {
		seed sqlstore.Seed
		says string
	}{
		{sqlstore.Seed{Consumer: "c", Table: s.inSchema("in.missing"), ID: "id"}, "write its name with its schema"},
		{sqlstore.Seed{Consumer: "c", Table: s.inSchema("in.old"), ID: "ID"}, "its columns are id, box"},
		{sqlstore.Seed{Consumer: "c", Table: s.inSchema("in.old"), ID: "box"}, "of type jsonb"},
		{sqlstore.Seed{Consumer: "c", Table: s.inSchema("in.old"), ID: "id", Batch: -1}, "use 1 to 10000"},
		{sqlstore.Seed{Consumer: "c", Table: s.inSchema("in.old"), ID: "id", Source: "semel:x"}, "reserved"},
		{sqlstore.Seed{Table: s.inSchema("in.old"), ID: "id"}, "no consumer"},
		{sqlstore.Seed{Consumer: "c", Table: s.inSchema("in.old"), ID: "id", Where: "nonsense"}, "nonsense"},
	} {
		if _, err := s.store.Seed(t.Context(), c.seed); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("got %v, want that it says %q", err, c.says)
		}
	}
}
