package services

import "testing"

// endedTB is a testing.TB that only runs the cleanup functions.
type endedTB struct {
	testing.TB
	failed bool
	end    []func()
}

func (e *endedTB) Helper()          {}
func (e *endedTB) Failed() bool     { return e.failed }
func (e *endedTB) Cleanup(f func()) { e.end = append([]func(){f}, e.end...) }

func TestAThingIsLentAgainUnlessItsTestFailed(t *testing.T) {
	made, emptied := 0, 0
	var last *endedTB
	things := Lent[int]{
		Make: func(t testing.TB) int {
			made++
			return made
		},
		Empty: func(t testing.TB, n int) int {
			emptied++
			t.Cleanup(func() { last.failed = emptied == 2 }) // this function runs before the other cleanup functions
			return n
		},
	}
	for i, want := range []int{1, 1, 1, 2} {
		last = &endedTB{}
		if got := things.Open(last); got != want {
			t.Errorf("test %d has schema %d, want %d", i, got, want)
		}
		for _, f := range last.end {
			f()
		}
	}
	first, second := things.Open(t), things.Open(t)
	if first == second {
		t.Error("two tests have the same schema at the same time")
	}
}

func TestASchemaIsEmptiedWhateverGuardsItsRows(t *testing.T) {
	dsn := Postgres(t)
	Exec(t, dsn, `create schema "O'Neill"; set search_path = "O'Neill"; create table parent (id int primary key); create table child (id int references parent);
		create table kept (id int); insert into parent values (1); insert into child values (1); insert into kept values (1);
		create function refuse() returns trigger language plpgsql as $f$ begin raise 'no'; end $f$;
		create trigger stay before delete on child for each row execute function refuse()`)
	Exec(t, dsn, Emptying("O'Neill", "kept"))
	for table, want := range map[string]int{"parent": 0, "child": 0, "kept": 1} {
		if n := number(t, dsn, `select count(*) from "O'Neill".`+table); n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
}
