package sqlhandler

import "testing"

func TestTablesOfSemelsOwn(t *testing.T) {
	postgres, sqlite := Postgres().Tables("public", "semel_"), SQLite().Tables("", "Mine_")
	t.Run("no_statement_names_them", func(t *testing.T) {
		for text, reason := range map[string]string{
			"insert into semel_markers values (1)":                                  "names semel_markers",
			"update only public.semel_inbox set state = :s":                         "names semel_inbox",
			"delete from \"public\".\"semel_acts\"":                                 "names semel_acts",
			"merge into semel_positions p using a on true when matched then delete": "names semel_positions",
			"with x as (delete from semel_guard returning 1) select 1":              "names semel_guard",
			"delete from only (semel_markers)":                                      "names semel_markers",
			"delete from only ((public . semel_markers))":                           "names semel_markers",
			"select id from semel_markers for update":                               "names semel_markers",
			"delete from U&\"semel_m\\0061rkers\"":                                  "writes a name with code points",
			"delete from u&\"semel_m!0061rkers\" uescape '!'":                       "writes a name with code points",
			"delete from semel_markers_readable":                                    "writes semel_markers_readable",
			"update only (public.semel_markers_readable) set id = 1":                "writes semel_markers_readable",
		} {
			wantFault(t, postgres, text, reason)
		}
		for text, reason := range map[string]string{
			"insert or replace into mine_markers values (1)": "names mine_markers",
			"delete from 'mine_markers'":                     "writes mine_markers",
			"delete from 'main'.'MINE_markers'":              "writes mine_markers",
			"delete from main . 'mine_markers'":              "writes mine_markers",
			"update or ignore 'mine_inbox' set id = 1":       "writes mine_inbox",
			"insert or replace into 'mine_acts' values (1)":  "writes mine_acts",
			"replace into [mine_guard] values (1)":           "names mine_guard",
		} {
			wantFault(t, sqlite, text, reason)
		}
	})
	t.Run("what_only_looks_like_them_is_taken", func(t *testing.T) {
		for _, text := range []string{
			"insert into mine (a) select id from semel_markers_readable", "insert into other.semel_markers values (1)",
			"update semel_accounts set a = 1", "insert into log values ('semel_markers')", "delete from a using public.semel_markers_readable",
		} {
			if faults := postgres.Check(text); len(faults) > 0 {
				t.Errorf("%s: %v", text, faults)
			}
		}
		for _, text := range []string{"insert into a values ('mine_markers')", "update a set b = 'mine_inbox'", "select u&\"x\" from a"} {
			if faults := sqlite.Check(text); len(faults) > 0 {
				t.Errorf("%s: %v", text, faults)
			}
		}
	})
}

func TestSettingsOfTheTransaction(t *testing.T) {
	for text, reason := range map[string]string{
		"select set_config('a.b', :x, true)":                   "stays in force for the messages that follow",
		"select \"set_config\" ('a.b', :x, true)":              "stays in force for the messages that follow",
		"select set_config('a.b', :x, false)":                  "stays in force for the messages that follow",
		"insert into a select pg_catalog.set_config(b, c, :x)": "stays in force for the messages that follow",
	} {
		wantFault(t, Postgres(), text, reason)
	}
	for text, reason := range map[string]string{
		"select set_config('a.b', :x, false)":               "set_config changes the session",
		"select set_config('a.b', lower(:x), true = false)": "set_config changes the session",
	} {
		wantFault(t, Postgres().Alone(), text, reason)
	}
	if faults := Postgres().Alone().Check("select set_config('a.b', :x, true)"); len(faults) > 0 {
		t.Errorf("in a batch of one: %v", faults)
	}
}
