//go:build unix

package postgres

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

// SQL that creates the tables that the policy of docs/guides/steps.md needs. A trigger delays the step "charge" or
// "ship" by the seconds in the table "slow".
const slowSteps = `create table stock (article text primary key, free integer not null);
create table accounts (who text primary key, balance integer not null);
create table shipments (id text primary key, article text, who text);
create table slow (step text primary key, n integer not null);
insert into stock values ('lamp', 100);
insert into accounts values ('ann', 1000);
insert into slow values ('charge', 0), ('ship', 0);
create function slowly() returns trigger language plpgsql as 'begin perform pg_sleep((select n from slow where step = tg_argv[0])); return null; end';
create trigger slow_charge after update on accounts for each row execute function slowly('charge');
create trigger slow_ship after insert on shipments for each row execute function slowly('ship');`

// stepsPolicy returns the policy of docs/guides/steps.md for PostgreSQL, changed in two ways: the lease is
// short, and the run does not end by itself.
func stepsPolicy(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/guides/steps.md")
	if err != nil {
		t.Fatal(err)
	}
	_, policy, _ := strings.Cut(string(page), "```yaml\n")
	policy, _, _ = strings.Cut(policy, "```")
	const alert, store = "    alerts: {pending_age: 60s}\n", "sqlite: {path: shop.db}"
	if !strings.Contains(policy, alert) || !strings.Contains(policy, store) {
		t.Fatal("docs/guides/steps.md has no policy")
	}
	return strings.NewReplacer(alert, alert+"    inbox: {lease: 1s, poll: 20ms}\n    timeout: 1m\n",
		"format: cloudevents}", "format: cloudevents, follow: true}", store, `postgres: {url: "${DATABASE_URL}"}`).Replace(policy)
}

func TestAPolicyOfStepsThatIsKilledBetweenThem(t *testing.T) {
	t.Run("C11_law_1_on_PostgreSQL_the_policy_of_the_page_goes_on_after_the_last_step_that_is_done", func(t *testing.T) {
		const orders = 10
		s := example(t, services.Postgres(t))
		var lines strings.Builder
		for i := range orders {
			fmt.Fprintf(&lines, `{"specversion":"1.0","id":"o-%d","source":"shop","type":"order","data":{"article":"lamp","who":"ann","amount":7}}`+"\n", i)
		}
		s.write(t, "steps.yaml", stepsPolicy(t))
		s.write(t, "setup.sql", slowSteps)
		s.write(t, "orders.jsonl", lines.String())
		s.semel(t, "migrate", "up", "--config", "steps.yaml")
		between := func(steps int) int {
			return queryOne[int](t, s.dsn, "select count(*) from semel_inbox where json_array_length(steps::json) = $1 and state <> 'COMPLETED'", steps)
		}
		for done, step := range []string{"charge", "ship"} {
			queryOne[int](t, s.dsn, "with u as (update slow set n = case step when $1 then 3600 else 0 end returning 1) select count(*) from u", step)
			r, _ := s.startCommand(t, "run", "--config", "steps.yaml")
			s.sleeper(t) // wait until the server is executing the step
			if between(done+1) == 0 {
				t.Errorf("%s runs, and no row has %d steps done", step, done+1)
			}
			_ = r.Process.Kill()
			_ = r.Wait()
			n := between(done + 1)
			if n == 0 {
				t.Error("it was killed when no message was between two steps")
			}
			t.Logf("killed when %d messages had %d steps done", n, done+1)
			// The test ends the sessions of the dead client itself, because the server does not notice that the client
			// died.
			for queryOne[int](t, s.dsn, "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'semel' and datname = current_database()") != 0 {
				continue
			}
		}
		queryOne[int](t, s.dsn, "with u as (update slow set n = 0 returning 1) select count(*) from u")
		last, _ := s.startCommand(t, "run", "--config", "steps.yaml")
		s.waitCompleted(t, orders)
		stopProcess(t, last)
		const ledger = "select (select free from stock) || ' ' || (select balance from accounts) || ' ' || (select count(*) from shipments)"
		if got := queryOne[string](t, s.dsn, ledger); got != "90 930 10" {
			t.Errorf("stock, balance and shipments are %s, want 90 930 10", got)
		}
	})
}
