package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// slowSteps has the tables for the policy of docs/guides/steps.md. The table slow says how long the steps
// charge and ship take; triggers cause the delay.
const slowSteps = `create table stock (article text primary key, free integer not null);
create table accounts (who text primary key, balance integer not null);
create table shipments (id text primary key, article text, who text);
create table slow (step text primary key, n integer not null);
insert into stock values ('lamp', 100);
insert into accounts values ('ann', 1000);
insert into slow values ('charge', 0), ('ship', 0);
create trigger slow_charge after update on accounts begin
  select (with recursive c(x) as (select 1 union all select x + 1 from c where x < (select n from slow where step = 'charge')) select count(*) from c);
end;
create trigger slow_ship after insert on shipments begin
  select (with recursive c(x) as (select 1 union all select x + 1 from c where x < (select n from slow where step = 'ship')) select count(*) from c);
end;`

// stepsPolicy returns the policy of docs/guides/steps.md with a short lease and a followed source.
func stepsPolicy(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/guides/steps.md")
	if err != nil {
		t.Fatal(err)
	}
	_, policy, _ := strings.Cut(string(page), "```yaml\n")
	policy, _, ok := strings.Cut(policy, "```")
	const alert = "    alerts: {pending_age: 60s}\n"
	if !ok || !strings.Contains(policy, alert) {
		t.Fatal("docs/guides/steps.md has no policy")
	}
	return strings.NewReplacer(alert, alert+"    inbox: {lease: 1s, poll: 20ms}\n    timeout: 10m\n", "format: cloudevents}", "format: cloudevents, follow: true}").Replace(policy)
}

func TestAPolicyOfStepsThatIsKilledBetweenThem(t *testing.T) {
	t.Run("C11_law_1_the_policy_of_the_page_goes_on_after_the_last_step_that_is_done", func(t *testing.T) {
		const orders = 10
		folder := t.TempDir()
		var lines strings.Builder
		for i := range orders {
			fmt.Fprintf(&lines, `{"specversion":"1.0","id":"o-%d","source":"shop","type":"order","data":{"article":"lamp","who":"ann","amount":7}}`+"\n", i)
		}
		for name, text := range map[string]string{"semel.yaml": stepsPolicy(t), "setup.sql": slowSteps, "orders.jsonl": lines.String()} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		output(t, folder, "semel", "migrate", "up")
		asked := func(query string) string {
			return strings.TrimSpace(string(output(t, folder, "sqlite", "shop.db", query)))
		}
		rows := func(steps int) string {
			return asked(fmt.Sprintf("select count(*) from semel_inbox where json_array_length(steps) = %d and state <> 'COMPLETED'", steps))
		}
		for done, step := range []string{"charge", "ship"} {
			asked("update slow set n = case step when '" + step + "' then 1000000000000 else 0 end")
			r := startAs(t, folder, exec.Command("semel", "run", "--log-level", "error"))
			eventually(t, fmt.Sprintf("no row has %d steps done", done+1), func() bool { return rows(done+1) != "0" })
			if err := r.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = r.cmd.Wait()
			between := rows(done + 1)
			if between == "0" {
				t.Error("it was killed when no message was between two steps")
			}
			t.Logf("killed when %s messages had %d steps done", between, done+1)
			asked("update slow set n = 0")
		}
		r := startAs(t, folder, exec.Command("semel", "run", "--log-level", "error"))
		eventually(t, "not all are completed", func() bool {
			return asked("select count(*) from semel_inbox where state = 'COMPLETED'") == fmt.Sprint(orders)
		})
		r.stopWith(t, os.Interrupt)
		const ledger = "select (select free from stock) || ' ' || (select balance from accounts) || ' ' || (select count(*) from shipments)"
		if got := asked(ledger); got != "90 930 10" {
			t.Errorf("stock, balance and shipments are %s, want 90 930 10", got)
		}
	})
}
