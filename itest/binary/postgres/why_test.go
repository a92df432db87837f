//go:build unix

package postgres

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

// whyOutput is the JSON output of `semel why`.
type whyOutput struct {
	Found []struct {
		Consumer, Stage, Applied, Says string
		Commands                       []string
		Markers                        []struct{ Outcome, Fingerprint string }
		Rows                           []struct {
			Number      int64
			Fingerprint string
			Conflict    bool
		}
	}
}

// stage runs `semel why` for an id that one consumer knows, and returns the stage of the message.
func (s fixture) stage(t *testing.T, id string, flags ...string) string {
	t.Helper()
	var e whyOutput
	s.runJSON(t, &e, append([]string{"why", id, "-o", "json"}, flags...)...)
	if len(e.Found) != 1 || len(e.Found[0].Markers) != 1 && e.Found[0].Stage != "broken" {
		t.Fatalf("of %s it is said: %+v", id, e)
	}
	return e.Found[0].Stage
}

func TestWhyOnPostgreSQL(t *testing.T) {
	s := example(t, services.Postgres(t))
	config := []string{"--config", "postgres.yaml"}
	var ran summary
	s.runJSON(t, &ran, append([]string{"run", "-o", "json"}, config...)...)
	parked := s.listParked(t, "postgres.yaml", "--reason", "condition unmet")[0]
	applied := queryOne[string](t, s.dsn, `select payment from entries order by payment limit 1`)
	for name, c := range map[string]struct {
		id, stage string
		flags     []string
	}{
		"K13_applied":          {applied, "applied", config},
		"K13_set_aside":        {parked.ID, "parked", config},
		"K13_without_a_policy": {parked.ID, "parked", []string{"--store", s.dsn}},
		"K13_of_one_consumer":  {parked.ID, "parked", []string{"--store", s.dsn, "--consumer", "billing"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := s.stage(t, c.id, c.flags...); got != c.stage {
				t.Errorf("%s is said to be %s, not %s", c.id, got, c.stage)
			}
		})
	}
	t.Run("K13_a_conflict_beside_what_was_applied", func(t *testing.T) {
		conflict := s.listParked(t, "postgres.yaml", "--reason", "conflict")[0]
		var e whyOutput
		s.runJSON(t, &e, append([]string{"why", conflict.ID, "-o", "json"}, config...)...)
		if f := e.Found[0]; f.Applied != "yes" || len(f.Rows) != 1 || !f.Rows[0].Conflict || f.Rows[0].Fingerprint == f.Markers[0].Fingerprint {
			t.Errorf("%+v", f)
		}
	})
	t.Run("K13_no_command_shows_the_password_of_the_database", func(t *testing.T) {
		secret := strings.Replace(s.dsn, "@", ":opensesame@", 1) // the server asks for no password
		if r := s.semel(t, "why", parked.ID, "--store", secret); strings.Contains(r.out+r.errors, "opensesame") || !strings.Contains(r.out, `--store "$SEMEL_STORE"`) {
			t.Errorf("%+v", r)
		}
	})
	t.Run("K13_an_id_that_nobody_knows", func(t *testing.T) {
		if r := s.semel(t, append([]string{"why", "never"}, config...)...); r.code != 1 || !strings.Contains(r.out, "never is not known") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("law_12_a_marker_that_its_row_denies", func(t *testing.T) {
		services.Exec(t, s.dsn, "update semel_markers set outcome = 1 where outcome = 3")
		if got := s.stage(t, parked.ID, config...); got != "broken" {
			t.Errorf("it is said to be %s", got)
		}
	})
}

// checkOutput is the JSON output of `semel check`.
type checkOutput struct {
	Consumers []struct {
		Answers []struct {
			Number                   int
			Result, Evidence, Remedy string
		}
	}
}

// runCheck runs `semel check` and returns the numbers of the checks that have the given result.
func (s fixture) runCheck(t *testing.T, result string, code int, flags ...string) (numbers []int) {
	t.Helper()
	r := s.semel(t, append([]string{"check", "-o", "json", "--config", "postgres.yaml"}, flags...)...)
	var c checkOutput
	if r.code != code {
		t.Fatalf("the exit code is %d, not %d: %s%s", r.code, code, r.out, r.errors)
	}
	decodeJSON(t, r.out, &c)
	for _, a := range c.Consumers[0].Answers {
		if a.Result == result {
			numbers = append(numbers, a.Number)
		}
	}
	return numbers
}

func TestCheckOnPostgreSQL(t *testing.T) {
	server := startPasswordServer(t, "secret")
	s := example(t, server.DSN())
	t.Run("K3_a_store_without_tables", func(t *testing.T) {
		if failed := s.runCheck(t, "fail", 4); len(failed) != 1 || failed[0] != 7 {
			t.Errorf("%v fail", failed)
		}
	})
	var ran summary
	s.runJSON(t, &ran, "run", "-o", "json", "--config", "postgres.yaml")
	t.Run("K3_a_sound_consumer", func(t *testing.T) {
		if unknown := s.runCheck(t, "cannot_know", 0); len(unknown) != 3 {
			t.Errorf("%v cannot be known", unknown)
		}
	})
	t.Run("K3_tables_that_do_not_protect", func(t *testing.T) {
		services.Exec(t, s.dsn, "alter table semel_markers set unlogged")
		if failed := s.runCheck(t, "fail", 4); len(failed) != 1 || failed[0] != 7 {
			t.Errorf("%v fail", failed)
		}
		services.Exec(t, s.dsn, "alter table semel_markers set logged")
	})
	t.Run("K3_law_12_a_marker_whose_row_says_otherwise", func(t *testing.T) {
		if failed := s.runCheck(t, "fail", 0, "--deep"); len(failed) > 0 {
			t.Errorf("of a sound store %v fail", failed)
		}
		services.Exec(t, s.dsn, "update semel_markers set outcome = 5 where outcome = 3")
		if failed := s.runCheck(t, "fail", 4, "--deep"); len(failed) != 1 || failed[0] != 7 {
			t.Errorf("%v fail", failed)
		}
		services.Exec(t, s.dsn, "update semel_markers set outcome = 3 where outcome = 5")
	})
	t.Run("K3_rows_that_nobody_watches", func(t *testing.T) {
		services.Exec(t, s.dsn, "update semel_inbox set changed_at = now() - interval '3 days'")
		if failed := s.runCheck(t, "fail", 4); len(failed) != 1 || failed[0] != 15 {
			t.Errorf("%v fail", failed)
		}
	})
	t.Run("K3_a_role_without_rights", func(t *testing.T) {
		u, err := url.Parse(server.DSN())
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword("shop", "secret")
		poor := s
		poor.dsn = u.String()
		r := poor.semel(t, "check", "--config", "postgres.yaml")
		if r.code != 0 && r.code != 4 || strings.Contains(r.out+r.errors, "secret") || !strings.Contains(r.out, "cannot know") {
			t.Errorf("%+v", r)
		}
		u.User = url.UserPassword("shop", "wrong")
		poor.dsn = u.String()
		if unknown := poor.runCheck(t, "cannot_know", 0); len(unknown) < 8 {
			t.Errorf("%v cannot be known", unknown)
		}
	})
	t.Run("K3_a_server_that_is_down", func(t *testing.T) {
		server.Stop()
		if unknown := s.runCheck(t, "cannot_know", 0); len(unknown) < 8 {
			t.Errorf("%v cannot be known", unknown)
		}
	})
}

func decodeJSON(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}
