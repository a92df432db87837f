package sqlite

import (
	"context"
	"os"
	"runtime"
	"testing"

	"github.com/semel-go/semel/itest/store/sqlsuite"
	"github.com/semel-go/semel/sqlstore"
	"github.com/semel-go/semel/store"
)

func TestErrorsOfTheRealDriver(t *testing.T) {
	i := instance(t, pragmas+foreignKeys)
	s := i.Store.(*sqlstore.Store)
	b, _, err := s.Begin(t.Context(), store.TxOptions{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Rollback(t.Context())
	exec := func(text string, args ...any) error {
		_, err := b.Tx(store.All).Exec(text, args...)
		return err
	}
	for _, statement := range []string{
		`create table invoices (number text not null unique, day integer primary key, lines integer check (lines > 0),
			other integer references invoices (day))`,
		"create unique index both on invoices (day, lines)",
		"create table strict_one (n integer) strict",
		"create trigger never before delete on invoices begin select raise(abort, 'never'); end",
		"insert into invoices values ('1', 1, 1, null)",
	} {
		if err := exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("trap_T10_constraints_types_and_syntax_are_permanent", func(t *testing.T) {
		for _, statement := range []string{
			"insert into invoices values ('1', 2, 1, null)", "insert into invoices values ('2', 1, 1, null)",
			"insert into invoices values (null, 2, 1, null)", "insert into invoices values ('2', 2, 0, null)",
			"insert into invoices values ('2', 2, 1, 77)", "insert into invoices values ('2', 'two', 1, null)",
			"insert into strict_one values ('word')", "delete from invoices", "insert into missing values (1)", "insert int",
		} {
			if err := exec(statement); err == nil || s.Classify(err) != store.ClassPermanent {
				t.Errorf("%s: %v is of class %v, want permanent", statement, err, s.Classify(err))
			}
		}
	})
	t.Run("B3_a_violation_names_its_constraint", func(t *testing.T) {
		err := exec("insert into invoices values ('1', 2, 1, null)")
		if !sqlstore.Violates(err, "invoices.number") || sqlstore.Violates(err, "invoices.day") {
			t.Errorf("%v", err)
		}
		err = exec("insert into invoices values ('2', 1, 1, null)")
		if !sqlstore.Violates(err, "invoices.day") || sqlstore.Violates(err, "invoices.number") {
			t.Errorf("%v", err)
		}
	})
	if b.(store.TxStatus).TxAborted() {
		t.Error("errors of statements broke the batch")
	}
}

// If a statement is cancelled in the moment in which it begins, the statement continues: the driver's
// interrupt finds no running statement, and the driver does not repeat the interrupt. The test therefore
// cancels before the statement begins, or after the statement has written data.
func TestAStatementThatIsCutOff(t *testing.T) {
	for name, until := range map[string]func(ctx context.Context, file string){"before_it_begins": nil, "while_it_writes": untilItSpills} {
		t.Run("law_12_a_swallowed_time_out_leaves_no_half_batch_"+name, func(t *testing.T) {
			i, all, b := halfDone(t)
			var file string
			if err := b.Tx(1).QueryRowContext(t.Context(), "select file from pragma_database_list where name = 'main'").Scan(&file); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			if until == nil {
				cancel()
			} else {
				go func() { until(ctx, file); cancel() }()
			}
			_, err := b.Tx(1).ExecContext(ctx, "insert into effects with recursive n (i) as (select 1 union all select i + 1 from n) select i from n")
			cancel()
			if err == nil || i.Store.Classify(err) != store.ClassRetry {
				t.Errorf("%v is of class %v, want retry", err, i.Store.Classify(err))
			}
			broken := b.(store.TxStatus).TxAborted()
			r := b.Commit(t.Context(), store.Ending{Trim: []int{1}})
			if (r.Outcome == store.Committed) == broken {
				t.Errorf("broken: %t, and the commit says %+v", broken, r)
			}
			sqlsuite.Works(t, i, all)
		})
	}
}

// untilItSpills returns when a transaction has written pages to the file because the cache is full, or when
// ctx ends.
func untilItSpills(ctx context.Context, file string) {
	size := func() int64 {
		info, err := os.Stat(file + "-wal")
		if err != nil {
			return 0
		}
		return info.Size()
	}
	for begun := size(); size() < begun+64<<10 && ctx.Err() == nil; {
		runtime.Gosched()
	}
}
