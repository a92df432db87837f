//go:build unix

package postgres

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	_ "modernc.org/sqlite"

	"github.com/semel-go/semel/itest/proof"
	"github.com/semel-go/semel/itest/services"
)

// A policy with which all checks succeed after a run.
const soundPolicy = `version: 1
listen: "LISTEN"
stores: {shop: {STORE, migrate: true, setup: booked.sql}}
sources:
  payments: {kafka: {brokers: "BROKERS", topics: [payments]}}
consumers:
  billing:
    from: payments
    store: shop
    strategy: inbox
    ack: after_receipt
    alerts: {pending_age: 60s}
    identity: {id: id, source: source}
    retention: 30d
    timeout: 20s
    effect: {kind: ledger, says: a second one books twice}
    handler: {types: {payment: {sql: {params: {id: id, amount: "body:/amount"}, statements: ["insert into booked values (:id, :amount)"]}}}}
`

// Parts of the policy that faults replace.
const (
	receiving = "    strategy: inbox\n    ack: after_receipt\n    alerts: {pending_age: 60s}\n"
	declared  = "    effect: {kind: ledger, says: a second one books twice}\n"
	handling  = `    handler: {types: {payment: {sql: {params: {id: id, amount: "body:/amount"}, statements: ["insert into booked values (:id, :amount)"]}}}}` + "\n"
	topic     = `{kafka: {brokers: "BROKERS", topics: [payments]}}`
	aDay      = 86_400_000
)

// callReplacements returns the replacements that make a consumer call an endpoint.
func callReplacements(call string, more ...string) []string {
	return append([]string{receiving, "    strategy: lease\n    alerts: {pending_age: 60s}\n",
		declared, "    effect: {kind: external, says: a second one charges twice}\n",
		handling, "    handler: {http: {url: \"http://127.0.0.1:1/charge\", " + call + "}}\n"}, more...)
}

// checkFixture is a database of one kind, after a run of soundPolicy.
type checkFixture struct {
	fixture
	store   string // configuration of the store in the policy
	listen  string // address of the metrics
	broker  *kgo.Client
	cluster *kfake.Cluster
	// execute runs an SQL statement. This field and the fields below depend on the kind of database.
	execute func(t *testing.T, statement string)
	dialect *strings.Replacer
}

func newCheckFixture(t *testing.T, dsn string) *checkFixture {
	t.Helper()
	listen, err := proof.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s := &checkFixture{fixture: fixture{dir: t.TempDir(), dsn: dsn, binary: os.Getenv(built)}, listen: listen}
	if dsn == "" {
		s.inSQLite(t)
	} else {
		s.store = `postgres: {url: "${DATABASE_URL}"}`
		s.execute = func(t *testing.T, statement string) { services.Exec(t, dsn, statement) }
		s.dialect = strings.NewReplacer("3 DAYS AGO", "now() - interval '3 days'", "IN AN HOUR", "now() + interval '1 hour'")
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "payments"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	s.cluster = cluster
	if s.broker, err = kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.broker.Close)
	s.setRetention(t, 7*aDay)
	s.write(t, "booked.sql", "create table booked (id text primary key, amount integer not null check (amount > 0));")
	s.sell(t)
	s.checkPolicy(t, "semel.yaml")
	if r := s.semel(t, "run", "--config", "semel.yaml", "--exit-when-idle", "100ms"); r.code != 0 {
		t.Fatalf("%+v", r)
	}
	return s
}

func (s *checkFixture) inSQLite(t *testing.T) {
	t.Helper()
	s.store = `sqlite: {path: shop.db}`
	s.execute = func(t *testing.T, statement string) {
		t.Helper()
		db, err := sql.Open("sqlite", "file:"+filepath.Join(s.dir, "shop.db")+"?_pragma=busy_timeout(5000)")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	s.dialect = strings.NewReplacer("3 DAYS AGO", "unixepoch() * 1000 - 3 * 86400000", "IN AN HOUR", "unixepoch() * 1000 + 3600000")
}

// sell sends three payments, and the first payment twice. The last payment cannot be booked.
func (s *checkFixture) sell(t *testing.T) {
	t.Helper()
	header := func(name, value string) kgo.RecordHeader { return kgo.RecordHeader{Key: name, Value: []byte(value)} }
	for i, amount := range []int{30, 12, 30, -1} {
		r := &kgo.Record{Topic: "payments", Key: []byte("k"), Value: fmt.Appendf(nil, `{"amount":%d}`, amount), Headers: []kgo.RecordHeader{
			header("ce_id", []string{"p1", "p2", "p1", "p3"}[i]), header("ce_source", "shop"), header("ce_specversion", "1.0"), header("ce_type", "payment")}}
		if err := s.broker.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// setRetention sets the topic's retention in milliseconds.
func (s *checkFixture) setRetention(t *testing.T, retention int) {
	t.Helper()
	most, segment := fmt.Sprint(retention), fmt.Sprint(aDay)
	changed, err := kadm.NewClient(s.broker).AlterTopicConfigs(context.WithoutCancel(t.Context()),
		[]kadm.AlterConfig{{Name: "retention.ms", Value: &most}, {Name: "segment.ms", Value: &segment}}, "payments")
	if err != nil || changed[0].Err != nil {
		t.Fatal(err, changed)
	}
}

// checkPolicy replaces parts of soundPolicy, and runs `semel check` with the resulting policy.
func (s *checkFixture) checkPolicy(t *testing.T, name string, pieces ...string) {
	t.Helper()
	text := soundPolicy
	for i := 0; i < len(pieces); i += 2 {
		if !strings.Contains(text, pieces[i]) {
			t.Fatalf("the policy has no %q", pieces[i])
		}
		text = strings.Replace(text, pieces[i], pieces[i+1], 1)
	}
	addresses := strings.Join(s.broker.OptValue(kgo.SeedBrokers).([]string), ",")
	s.write(t, name, strings.NewReplacer("STORE", s.store, "BROKERS", addresses, "LISTEN", s.listen).Replace(text))
}

// answer is the result of one check of `semel check`.
type answer struct {
	number   int
	evidence string
}

// checkAnswers runs `semel check` with a policy and returns the checks that have the given result.
func (s *checkFixture) checkAnswers(t *testing.T, result string, code int, args ...string) (all []answer) {
	t.Helper()
	r := s.semel(t, append([]string{"check", "-o", "json"}, args...)...)
	if r.code != code {
		t.Fatalf("the exit code is %d, not %d: %s%s", r.code, code, r.out, r.errors)
	}
	var c checkOutput
	decodeJSON(t, r.out, &c)
	for _, a := range c.Consumers[0].Answers {
		if a.Result != result {
			continue
		}
		if a.Remedy == "" && result == "fail" {
			t.Errorf("check %d has no fix", a.Number)
		}
		all = append(all, answer{a.Number, a.Evidence})
	}
	return all
}

func numbersOf(all []answer) (numbers []int) {
	for _, a := range all {
		numbers = append(numbers, a.number)
	}
	return numbers
}

// find causes a fault, runs the checks, verifies which checks fail, and repairs the fault.
func (s *checkFixture) find(t *testing.T, f fault) {
	policy := "semel.yaml"
	if f.policy != nil {
		policy = "planted.yaml"
		s.checkPolicy(t, policy, f.policy...)
	}
	for _, statement := range f.cause {
		s.execute(t, s.dialect.Replace(statement))
	}
	if f.keeps != 0 {
		s.setRetention(t, f.keeps)
		defer s.setRetention(t, 7*aDay)
	}
	args := []string{"--config", policy}
	if f.deep {
		args = append(args, "--deep")
	}
	found := s.checkAnswers(t, "fail", 4, args...)
	for _, statement := range f.repair {
		s.execute(t, s.dialect.Replace(statement))
	}
	if numbers := numbersOf(found); !slices.Equal(numbers, f.under) {
		t.Fatalf("%v fail, not %v: %+v", numbers, f.under, found)
	}
	if said := found[len(found)-1].evidence; !strings.Contains(said, f.expectedText) {
		t.Errorf("of %d is said %q, which has no %q", f.under, said, f.expectedText)
	}
	for _, a := range found {
		t.Logf("%2d FAIL  %s", a.number, a.evidence)
	}
}

func TestCheckFindsEachPlantedFaultUnderItsNumber(t *testing.T) {
	t.Setenv("WEBHOOK_SECRET", "a secret that no provider has")
	all := faults()
	if len(all) < 20 {
		t.Errorf("only %d faults are planted", len(all))
	}
	for database, dsn := range map[string]string{"SQLite": "", "PostgreSQL": services.Postgres(t)} {
		t.Run(database, func(t *testing.T) {
			s := newCheckFixture(t, dsn)
			sound := func(when string) {
				if failed := s.checkAnswers(t, "fail", 0, "--config", "semel.yaml", "--deep"); len(failed) > 0 {
					t.Errorf("%s %+v fail", when, failed)
				}
				if unknown := numbersOf(s.checkAnswers(t, "cannot_know", 0, "--config", "semel.yaml")); !slices.Equal(unknown, []int{4, 18, 24}) {
					t.Errorf("%s %v cannot be known", when, unknown)
				}
			}
			sound("before any fault")
			for _, f := range all {
				t.Run(f.name, func(t *testing.T) { s.find(t, f) })
			}
			sound("after all faults were mended")
		})
	}
}

func TestCheckAsksNothingAboutAPolicyThatNobodyMayRun(t *testing.T) {
	s := newCheckFixture(t, "")
	for name, pieces := range refusedFaults() {
		t.Run(name, func(t *testing.T) {
			s.checkPolicy(t, "planted.yaml", pieces...)
			if r := s.semel(t, "check", "--config", "planted.yaml"); r.code != 3 || r.out != "" || !strings.HasPrefix(r.errors, "planted.yaml:") {
				t.Errorf("%+v", r)
			} else {
				t.Log(r.errors)
			}
		})
	}
}

// silentAddress returns an address that accepts connections but never answers.
func silentAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener.Addr().String() // the kernel accepts connections although nobody calls Accept
}

func TestCheckEndsWhereNobodyAnswers(t *testing.T) {
	s := newCheckFixture(t, "")
	for name, c := range map[string]struct {
		pieces  []string
		unknown []int
	}{
		"K3_a_broker_that_answers_nothing": {[]string{"BROKERS", silentAddress(t)}, []int{4, 13, 18, 22, 24}},
		"K3_a_database_that_answers_nothing": {[]string{"STORE", `postgres: {url: "postgres://shop@` + silentAddress(t) + `/shop?sslmode=disable"}`},
			[]int{2, 3, 4, 7, 12, 15, 16, 18, 22, 24, 25}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			policy := name + ".yaml"
			s.checkPolicy(t, policy, c.pieces...)
			began := time.Now()
			unknown := s.checkAnswers(t, "cannot_know", 0, "--config", policy, "--timeout", "500ms")
			// The client waits ten seconds for the first answer on each connection.
			if took := time.Since(began); !slices.Equal(numbersOf(unknown), c.unknown) || took > 30*time.Second {
				t.Errorf("after %v %+v cannot be known", took, unknown)
			}
		})
	}
}
