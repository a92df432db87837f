//go:build unix

package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/store/sqlsuite"
)

const moved = `version: 1
stores: {shop: {postgres: {url: "${DATABASE_URL}"}, migrate: true, setup: moved.sql}}
sources: {sales: {file: {path: moved.jsonl, format: json}}}
consumers:
  stock:
    from: sales
    store: shop
    identity: {id: "body:/id"}
    retention: {keep: 30d, id_time: %s}
    handler: {sql: {params: {id: "body:/id"}, statements: ["insert into sold values (:id)"]}}
`

// The test follows the steps of docs/operate/daily-partitions.md.
func TestAConsumerIsMovedToDays(t *testing.T) {
	s := example(t, services.Postgres(t))
	var lines strings.Builder
	day := sqlsuite.Today(t)
	for i := range 20 {
		ms := day.Add(-time.Duration(i) * 24 * time.Hour).UnixMilli()
		fmt.Fprintf(&lines, "{\"id\":\"%08x-%04x-7000-8000-%012x\"}\n", ms>>16, ms&0xffff, i)
	}
	s.write(t, "moved.jsonl", lines.String())
	s.write(t, "moved.sql", "create table sold (id text not null)")
	s.write(t, "before.yaml", fmt.Sprintf(moved, "uuidv7"))
	s.write(t, "days.yaml", fmt.Sprintf(moved, "uuidv7, daily_partitions: true"))
	run := func(t *testing.T, policy string, applied, duplicates int) {
		t.Helper()
		var got summary
		s.runJSON(t, &got, "run", "--config", policy, "--from-start", "-o", "json")
		if counts := got.Consumers["stock"]; counts["applied"] != applied || counts["duplicates"] != duplicates {
			t.Errorf("%v", counts)
		}
	}
	move := func(args ...string) result {
		return s.semel(t, append([]string{"retention", "move", "stock", "--config", "days.yaml", "--because", "it is large"}, args...)...)
	}
	run(t, "before.yaml", 20, 0)
	t.Run("trap_T80_not_without_having_asked_for_it", func(t *testing.T) {
		if r := s.semel(t, "run", "--config", "days.yaml"); r.code == 0 || !strings.Contains(r.errors, "move them") {
			t.Errorf("%+v", r)
		}
		if r := move("--end"); r.code != 4 || !strings.Contains(r.errors, "has begun") {
			t.Errorf("%+v", r)
		}
		if r := move("--dry-run"); r.code != 0 || r.out != "stock: would begin a move to days\n" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("trap_T80_in_the_documented_steps", func(t *testing.T) {
		if r := move(); r.code != 0 || !strings.Contains(r.out, "stock: moves;") {
			t.Fatalf("%+v", r)
		}
		run(t, "days.yaml", 0, 20)
		run(t, "before.yaml", 0, 20)
		if r := move("--end"); r.code != 0 || !strings.Contains(r.out, "20 markers copied, 20 removed") {
			t.Fatalf("%+v", r)
		}
		run(t, "days.yaml", 0, 20)
		if r := move("--end"); r.code != 0 {
			t.Errorf("again: %+v", r)
		}
	})
	t.Run("H3_days_are_a_part_of_their_own_of_what_is_shown", func(t *testing.T) {
		r := s.semel(t, "retention", "status", "--config", "days.yaml")
		if r.code != 0 || !strings.Contains(r.out, "DAYS") || !strings.Contains(r.out, "35 from ") {
			t.Errorf("%+v", r)
		}
		r = s.semel(t, "retention", "run", "--config", "days.yaml", "-o", "json")
		if r.code != 0 || !strings.Contains(r.out, `"days": 1`) {
			t.Errorf("%+v", r)
		}
	})
}
