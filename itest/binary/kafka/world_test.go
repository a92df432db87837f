//go:build unix

// Package kafka tests the binary with consumers of Kafka topics.
package kafka

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/worlds/processes"
)

// The time limit for all events that a test waits for.
const patience = 3 * time.Minute

// fixture is what a test uses: a topic, a database, and the binary with its folder.
type fixture struct {
	binary, dir, dsn, topic string
	brokers                 []string
}

// newFixture creates a topic, and a database with a table of entries, on the servers that all tests share.
func newFixture(t *testing.T, partitions int) fixture {
	t.Helper()
	s := fixture{dir: t.TempDir(), dsn: services.Postgres(t), brokers: services.Kafka(t)}
	s.topic = services.Topic(t, s.brokers, partitions)
	services.Exec(t, s.dsn, `create table entries (consumer text not null, payment text not null, amount bigint not null)`)
	s.binary = os.Getenv(built)
	return s
}

// The environment variable with the path of the binary, which is built once.
const built = "SEMELKAFKA_BINARY"

func TestMain(m *testing.M) { os.Exit(processes.WithBinary(m, built)) }

// consumer returns the policy text of a consumer, with a name that no other test uses. The table of entries has no
// unique key, so a second effect of a message would be visible.
func (s fixture) consumer(name, source, more string) string {
	return fmt.Sprintf(`
  %s:
    from: %s
    store: shop
    identity: {id: id, source: source}
    %s
    handler:
      sql:
        params: {payment: id, amount: "body:/amount"}
        statements:
          - insert into entries values ('%s', :payment, 100 / :amount)
`, s.name(name), source, more, name)
}

// name returns the unique name of a consumer. The consumer group has the same name.
func (s fixture) name(consumer string) string { return consumer + "-" + s.topic }

// policy writes a policy. The parameter source contains further settings of the source "payments".
func (s fixture) policy(t *testing.T, name, source string, consumers ...string) {
	t.Helper()
	s.write(t, name, fmt.Sprintf(`version: 1
stores:
  shop:
    postgres: {url: "${DATABASE_URL}"}
    migrate: true
sources:
  lines: {file: {path: lines.jsonl}}
  payments:
    kafka:
      brokers: "${KAFKA_BROKERS}"
      topics: %s
      %s
consumers:%s`, s.topic, source, strings.Join(consumers, "")))
}

func (s fixture) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// makePayments returns the payments from first to last as CloudEvents in binary mode. One payment in ten occurs
// twice.
func (s fixture) makePayments(first, last int) []*kgo.Record {
	var all []*kgo.Record
	for n := first; n <= last; n++ {
		header := func(name, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: name, Value: []byte(value)} }
		r := kgo.Record{Topic: s.topic, Key: fmt.Append(nil, n%17), Value: []byte(`{"amount":1}`),
			Headers: []kgo.RecordHeader{header("ce_id", fmt.Sprint("p", n)), header("ce_source", "shop"),
				header("ce_specversion", "1.0"), header("ce_type", "payment")}}
		all = append(all, &r)
		if n%10 == 0 {
			again := r
			all = append(all, &again)
		}
	}
	return all
}

func (s fixture) produce(t *testing.T, records ...*kgo.Record) {
	t.Helper()
	client := s.client(t)
	defer client.Close()
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func (s fixture) client(t *testing.T, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(append(services.Patient(), kgo.SeedBrokers(s.brokers...)), options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (s fixture) readRecords(t *testing.T, topic string) []*kgo.Record {
	t.Helper()
	client := s.client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	ends.Each(func(o kadm.ListedOffset) { want += int(o.Offset) })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []*kgo.Record
	for len(all) < want && ctx.Err() == nil {
		all = append(all, client.PollFetches(ctx).Records()...)
	}
	return all
}

// groupLag returns the number of records that a consumer's group has not committed.
func (s fixture) groupLag(t *testing.T, consumer string) int64 {
	t.Helper()
	client := s.client(t)
	defer client.Close()
	lag, err := kadm.NewClient(client).Lag(t.Context(), s.name(consumer))
	if err != nil || lag.Error() != nil {
		t.Fatal(err, lag.Error())
	}
	return lag[s.name(consumer)].Lag.Total()
}

func (s fixture) command(args ...string) *exec.Cmd {
	cmd := exec.Command(s.binary, args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "DATABASE_URL="+s.dsn, "KAFKA_BROKERS="+strings.Join(s.brokers, ","))
	return cmd
}

// run runs a policy until its topics have no more records. The results are the counts of each consumer and the log.
func (s fixture) run(t *testing.T, policy string, code int) (map[string]semel.Counts, string) {
	t.Helper()
	cmd := s.command("run", "--config", policy, "-o", "json", "--exit-when-idle", "1s")
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if cmd.ProcessState.ExitCode() != code {
		t.Fatalf("semel run ended with %d, not %d: %s", cmd.ProcessState.ExitCode(), code, &log)
	}
	var summary struct{ Consumers map[string]semel.Counts }
	if err := json.Unmarshal(out.Bytes(), &summary); err != nil {
		t.Fatalf("%v in %s", err, &out)
	}
	counts := map[string]semel.Counts{}
	for name, c := range summary.Consumers {
		// Rerun depends on the sizes of batches, and SameContent depends on the amounts, which are all equal
		c.Rerun, c.SameContent = 0, 0
		counts[strings.TrimSuffix(name, "-"+s.topic)] = c
	}
	return counts, log.String()
}

// wantOnce checks that the consumer has written an entry for each payment exactly once.
func (s fixture) wantOnce(t *testing.T, consumer string, payments int) {
	t.Helper()
	all, distinct := s.countEntries(t, consumer)
	if all != payments || distinct != payments {
		t.Errorf("%s has %d entries of %d payments, want %d once each", consumer, all, distinct, payments)
	}
}

func (s fixture) countEntries(t *testing.T, consumer string) (all, distinct int) {
	t.Helper()
	query(t, s.dsn, `select count(*), count(distinct payment) from entries where consumer = '`+consumer+`'`, &all, &distinct)
	return all, distinct
}

func query(t *testing.T, dsn, sql string, into ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := conn.QueryRow(t.Context(), sql).Scan(into...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// waitUntil waits until the function returns true.
func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	if !services.Within(patience, done) {
		t.Fatalf("%s: not within %v", what, patience)
	}
}
