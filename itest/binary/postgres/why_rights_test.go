//go:build unix

package postgres

import (
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

// `semel why` must answer even if the operator on call has only some of the privileges.
func TestWhyTellsWhatItMayRead(t *testing.T) {
	s := example(t, services.Postgres(t))
	var ran summary
	s.runJSON(t, &ran, "run", "-o", "json", "--config", "postgres.yaml")
	parked := s.listParked(t, "postgres.yaml", "--reason", "condition unmet")[0]
	services.Exec(t, s.dsn, "drop role if exists semel_on_call", "create role semel_on_call", "grant select on all tables in schema public to semel_on_call")
	t.Cleanup(func() { services.Exec(t, s.dsn, "drop owned by semel_on_call", "drop role semel_on_call") })
	poor := s
	poor.dsn += map[bool]string{true: "&", false: "?"}[strings.Contains(s.dsn, "?")] + "role=semel_on_call"
	for table, told := range map[string]string{
		"migrations": "source /shop: It was not applied", "scopes": "whether it has a marker", "markers": "whether it has a marker", "inbox": "whether it has a row",
		"acts": "the changes of its rows", "edits": "the changes of its rows", "keys": "whether it has a leased key", "generation_states": "the generation of its consumer",
		"controls": "whether its consumer is paused", "retention": "the last progress of its consumer", "replays": "whether a replay includes it",
	} {
		t.Run("K13_without_the_right_to_read_"+table, func(t *testing.T) {
			services.Exec(t, s.dsn, "revoke select on semel_"+table+" from semel_on_call")
			r := poor.semel(t, "why", parked.ID, "--config", "postgres.yaml")
			services.Exec(t, s.dsn, "grant select on semel_"+table+" to semel_on_call")
			if known := table != "scopes"; known != (r.code == 0) || !strings.Contains(r.out, told) || known && !strings.Contains(r.out, "consumer billing, source /shop: It") {
				t.Errorf("%+v", r)
			}
			if table != "migrations" && !strings.Contains(r.out, "permission denied for table semel_"+table) || !strings.Contains(r.out, "grant") && table != "migrations" {
				t.Errorf("the right that is missing is not named: %+v", r)
			}
		})
	}
	t.Run("K13_consumers_that_cannot_be_listed_are_no_answer_that_nobody_knows_it", func(t *testing.T) {
		services.Exec(t, s.dsn, "revoke select on semel_controls from semel_on_call")
		r := poor.semel(t, "why", parked.ID, "--store", poor.dsn)
		if r.code != 1 || !strings.Contains(r.out, "with an unknown consumer") || !strings.Contains(r.out, "permission denied for table semel_controls") {
			t.Errorf("%+v", r)
		}
		if r := poor.semel(t, "why", parked.ID, "--store", poor.dsn, "--consumer", "billing"); r.code != 0 || !strings.Contains(r.out, "It was not applied") {
			t.Errorf("%+v", r)
		}
	})
}
