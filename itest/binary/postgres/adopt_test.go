//go:build unix

package postgres

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

const adopting = `version: 1
stores:
  shop: {postgres: {url: "${DATABASE_URL}"}, migrate: true}
sources:
  feed: {file: {path: feed.jsonl, format: json}}
consumers:
  billing:
    from: feed
    store: shop
    strategy: {marker: true}
    identity: {id: "body:/id", source: "const:shop"}
    dedup:
      table: public.processed
      columns: {id: message_id}
      values: {status: done}
    handler: {sql: {params: {id: "body:/id"}, statements: ["insert into effects values (:id)"]}}
`

// newOldFixture returns a test database in which the program that Semel replaces has processed the first five of twenty
// messages. The last three messages have ids that are no UUIDs.
func newOldFixture(t *testing.T) fixture {
	t.Helper()
	dsn := services.Postgres(t)
	services.Exec(t, dsn, `create table processed (message_id uuid primary key, status text not null, at timestamptz default now());
		create table effects (id text constraint effects_once primary key)`)
	s := example(t, dsn)
	var feed strings.Builder
	for i := range 20 {
		id := fmt.Sprintf("018f3a2b-0000-7000-8000-%012d", i)
		if i >= 17 {
			id = fmt.Sprint("order-", i)
		}
		if i < 5 {
			services.Exec(t, dsn, "insert into processed values ('"+id+"', 'old')")
		}
		fmt.Fprintf(&feed, "{\"id\": %q}\n", id)
	}
	s.write(t, "feed.jsonl", feed.String())
	s.write(t, "adopting.yaml", adopting)
	s.write(t, "business.yaml", strings.Replace(adopting, "{marker: true}", "{marker: true, business_key: {constraint: effects_once}}", 1))
	s.write(t, "second.yaml", strings.ReplaceAll(adopting, "billing:", "shipping:"))
	s.write(t, "column.yaml", strings.Replace(adopting, "id: message_id", "id: messageid", 1))
	s.write(t, "down.yaml", strings.Replace(adopting, "${DATABASE_URL}", "postgres://nobody@127.0.0.1:1/none", 1))
	return s
}

func TestATableIsAdoptedByAPolicy(t *testing.T) {
	for _, policy := range []string{"adopting.yaml", "business.yaml"} {
		t.Run("J2_a_policy_adopts_a_table_"+policy, func(t *testing.T) {
			s := newOldFixture(t)
			var ran summary
			s.runJSON(t, &ran, "run", "-o", "json", "--config", policy)
			counts := ran.Consumers["billing"]
			if counts["applied"] != 12 || counts["duplicates"] != 5 || counts["parked"] != 3 {
				t.Errorf("%v", counts)
			}
			if n := queryOne[int](t, s.dsn, "select count(*) from effects"); n != 12 {
				t.Errorf("%d effects", n)
			}
			if n := queryOne[int](t, s.dsn, "select count(*) from processed where status = 'done' and at is not null"); n != 12 {
				t.Errorf("%d rows for the old code", n)
			}
			if rows := s.listParked(t, policy); len(rows) != 3 || rows[0].Reason != "malformed identity" {
				t.Errorf("%+v", rows)
			}
			var status struct{ Migrations []struct{ Applied bool } }
			s.runJSON(t, &status, "migrate", "status", "-o", "json", "--config", policy)
			if len(status.Migrations) == 0 {
				t.Error("no migrations are shown")
			}
		})
	}
	t.Run("J2_an_adopted_table_that_does_not_fit_is_refused_at_its_place", func(t *testing.T) {
		s := newOldFixture(t)
		s.runRefused(t, []string{"column.yaml:13:", "consumers.billing.dedup", `has no column "messageid": its columns are message_id, status, at`},
			"run", "-o", "json", "--config", "column.yaml")
		var ran summary
		s.runJSON(t, &ran, "run", "-o", "json", "--config", "adopting.yaml")
		s.runRefused(t, []string{"second.yaml:13:", "consumer billing has adopted public.processed", "semel_setup"}, "run", "-o", "json", "--config", "second.yaml")
		s.runRefused(t, []string{"store shop", "start the server"}, "run", "-o", "json", "--config", "down.yaml")
		if n := queryOne[int](t, s.dsn, "select count(*) from effects"); n != 12 {
			t.Errorf("%d effects", n)
		}
	})
}
