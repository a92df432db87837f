//go:build unix

package kafka

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/semel-go/semel/itest/services"
)

// TestTheExampleDoesWhatItsReadmeSays runs the commands in the README of examples/kafka. The test uses a broker of its
// own, because the example has fixed topic names.
func TestTheExampleDoesWhatItsReadmeSays(t *testing.T) {
	s := fixture{dir: "../../..", dsn: services.Postgres(t), brokers: services.StartKafka(t, services.KafkaOptions{}).Brokers()}
	s.binary = "examples/kafka/try"
	out := s.try(t)
	t.Run("the_policy_applies_each_payment_once", func(t *testing.T) {
		first, second, found := strings.Cut(out, "--- the second time")
		for name, want := range map[string]string{"applied": "995", "duplicates": "100", "dead_lettered": "5", "deliveries": "1100"} {
			if got := count(first, name); got != want {
				t.Errorf("the first time %s %s, want %s", name, got, want)
			}
		}
		if !found || count(second, "applied") != "0" || count(second, "duplicates") != "1100" {
			t.Errorf("the second time:\n%s", second)
		}
		var entries, payments, balance, sum int
		query(t, s.dsn, `select count(*), count(distinct payment), (select sum(balance) from accounts), sum(amount) from entries`, &entries, &payments, &balance, &sum)
		if entries != 995 || payments != 995 || balance != sum {
			t.Errorf("%d entries of %d payments, balances of %d from amounts of %d", entries, payments, balance, sum)
		}
	})
	t.Run("what_the_database_refuses_is_in_the_dead_letters_once", func(t *testing.T) {
		letters := map[string]int{}
		for _, r := range s.readRecords(t, "payments-dead") {
			letters[header(r, "ce_id")+" "+header(r, "semel-reason")]++
		}
		if len(letters) != 5 || letters["payment-000199 permanent failure"] != 1 {
			t.Errorf("%v", letters)
		}
	})
	t.Run("the_program_in_Go_applies_each_payment_once", func(t *testing.T) { s.runBalances(t) })
}

func (s fixture) try(t *testing.T) string {
	t.Helper()
	cmd := s.command()
	cmd.Path = filepath.Join(s.dir, s.binary)
	if absolute, err := filepath.Abs(cmd.Path); err == nil {
		cmd.Path = absolute
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, &log, out)
	}
	return string(out)
}

// count returns the number that follows a name in the summary.
func count(summary, name string) string {
	for line := range strings.Lines(summary) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			return fields[1]
		}
	}
	return ""
}

// runBalances runs the program of docs/guides/kafka.md until it has read all messages.
func (s fixture) runBalances(t *testing.T) {
	program := filepath.Join(t.TempDir(), "balances")
	build := exec.Command("go", "build", "-o", program, "./examples/kafka/balances")
	build.Dir = s.dir
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	services.Exec(t, s.dsn, `create table balances (account text primary key, balance bigint not null)`)
	s.binary = program
	cmd := s.command()
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Five payments have a negative amount. The database of this program accepts negative amounts.
	waitUntil(t, "all payments", func() bool {
		var n int
		query(t, s.dsn, `select count(*) from pg_catalog.pg_class where relname = 'semel_markers'`, &n)
		if n == 1 {
			query(t, s.dsn, `select count(*) from semel_markers_readable where consumer = 'balances'`, &n)
		}
		return n == 1000
	})
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("a stop is no failure: %v", err)
	}
	var balances, entries int
	query(t, s.dsn, `select (select sum(balance) from balances), (select sum(amount) from entries)`, &balances, &entries)
	if refused := 29 + 49 + 69 + 89 + 19; balances != entries-refused {
		t.Errorf("balances of %d, want %d", balances, entries-refused)
	}
}
