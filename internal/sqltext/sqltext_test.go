package sqltext

import "testing"

func TestStatementsThatEndATransaction(t *testing.T) {
	for text, want := range map[string]bool{
		"commit": true, "COMMIT and chain": true, "end;": true, "abort": true, "rollback": true, "Rollback Work": true,
		"/* x */ rollback": true, "-- x\nrollback": true, "; rollback": true, "insert into a values (1); commit": true,
		"prepare transaction 'x'": true, "rollback prepared 'x'": true, "insert into a values (';'); rollback": true,
		"rollback to a": false, "rollback work to savepoint a": false, "savepoint a": false, "release a": false, "begin": false,
		"insert into a values ('; rollback')": false, "select 1 -- ; rollback": false, "select 1;": false, "": false, "  ": false,
		"update a set b = case c when 1 then 2 end": false, "prepare p as select 1": false, "call rollback()": false,
		"\u3000rollback": false, "'": false, "select ';": false,
		"create function f() returns int language sql begin atomic select 1; select case 1 when 1 then 2 end; end": false,
		"create function f() returns int language sql begin atomic select 1; end; commit":                          true,
		"create or replace procedure f() language plpgsql as $$ begin commit; end $$":                              false,
	} {
		if got := Postgres().Ends(text); got != want {
			t.Errorf("%q ends the transaction: %t, want %t", text, got, want)
		}
	}
	t.Run("the_body_of_a_trigger_is_no_list_of_statements", func(t *testing.T) {
		trigger := "create temp trigger if not exists t after insert on a begin update a set b = case c when 1 then 2 end; delete from a; end"
		for text, want := range map[string]bool{trigger: false, trigger + "; end": true, trigger + ";\ncommit": true} {
			if got := SQLite().Ends(text); got != want {
				t.Errorf("%q ends the transaction: %t, want %t", text, got, want)
			}
		}
	})
	t.Run("trap_T100_a_comment_ends_where_the_database_ends_it", func(t *testing.T) {
		text := "select 1 --\r; rollback"
		if !Postgres().Ends(text) {
			t.Error("in PostgreSQL a carriage return does not end the comment")
		}
		if SQLite().Ends(text) {
			t.Error("in SQLite a carriage return ends the comment")
		}
	})
}

func TestHowStatementsBegin(t *testing.T) {
	t.Run("trap_T100_what_is_no_plain_blank_begins_no_statement", func(t *testing.T) {
		for text, want := range map[string]bool{
			"rollback": true, " \t\n\v\f\rrollback": true, "(select 1)": true, "/* \u3000 */ rollback": true,
			"\u3000rollback": false, "\u00a0rollback": false, "\u0085rollback": false, "\ufeffrollback": false, "\u200brollback": false,
			`"rollback"`: false, "1": false, "'x'": false, "_x": false, "@x": false,
		} {
			tokens, err := SQLite().Scan(text)
			if err != nil {
				t.Fatal(err)
			}
			if got := Split(tokens)[0].Begins(); got != want {
				t.Errorf("%+q begins like a statement: %t, want %t", text, got, want)
			}
		}
	})
}

func TestBareTexts(t *testing.T) {
	for text, want := range map[string]string{
		"select 1": "select 1", " -- x\nselect 1; -- y": "select 1", "select 1 /* x */ ;;": "select 1", "/* x */": "/* x */", "'": "'",
		"select 1 -- x\n, 2": "select 1 -- x\n, 2",
	} {
		if got := Postgres().Bare(text); got != want {
			t.Errorf("%q is bare %q, want %q", text, got, want)
		}
	}
}

func TestCopies(t *testing.T) {
	t.Run("a_copy_is_seen_however_it_is_spelled", func(t *testing.T) {
		for text, want := range map[string]bool{
			"copy t from stdin": true, " \n COPY t (a) from stdin": true, "-- so\ncopy\tt from stdin": true, "/* so */ copy t to stdout": true, `copy"t" from stdin`: true,
			"; copy t from stdin": true, ";;/* x */;\ncopy t from stdin;": true, "/* a /* b */ */ copy t from stdin": true, "--\rcopy t from stdin": true,
			"copy/**/t from stdin": true, "Copy(select 1) to stdout": true, "copy--\nt from stdin": true, "select 1; copy t from stdin": true, "\fcopy\vt from stdin": true,
			"select $$;$$; copy t from stdin": true, "select E'\\';'; copy t from stdin": true,
			"copying()": false, "insert into copy values (1)": false, "copy": false, "": false, "-- copy t from stdin": false, "select 'copy t from stdin'": false,
			"/* a /* b */ copy t from stdin */ select 1": false, "select $a$; copy t from stdin $a$": false, "select '; copy t from stdin'": false,
			`"copy" t from stdin`: false, "\u3000copy t from stdin": false, "copy$ t from stdin": false, "select 1 --\n; /* copy t from stdin": false, "select E'\\'; copy t from stdin'": false,
		} {
			if got := Postgres().Copies(text); got != want {
				t.Errorf("%q is a copy: %t, want %t", text, got, want)
			}
		}
	})
}

func BenchmarkEnds(b *testing.B) {
	for b.Loop() {
		Postgres().Ends("update accounts set balance = balance + $1 where id = $2")
	}
}
