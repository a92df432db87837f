//go:build unix

package kafka

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/services"
	"github.com/twmb/franz-go/pkg/kgo"
)

// deadLetterFixture is a test topic and database in which payments need an account. A payment without an account
// becomes a dead letter.
type deadLetterFixture struct {
	fixture
	letters string
}

func newDeadLetterFixture(t *testing.T) deadLetterFixture {
	s := deadLetterFixture{fixture: newFixture(t, 1)}
	s.letters = services.Topic(t, s.brokers, 1)
	services.Exec(t, s.dsn, `create table accounts (id text primary key)`)
	s.policy(t, "dead.yaml", "", s.paymentPolicy("billing"), s.paymentPolicy("other"))
	return s
}

// paymentPolicy returns the policy text of a consumer of payments.
func (s deadLetterFixture) paymentPolicy(name string) string {
	return fmt.Sprintf(`
  %s:
    from: payments
    store: shop
    identity: {id: id, source: source}
    dead_letter: {topic: %s}
    on_precondition: dead_letter
    handler:
      sql:
        params: {payment: id, account: "body:/account"}
        statements:
          - {sql: "insert into entries select '%s', :payment, 1 from accounts where id = :account", rows: 1}
`, s.name(name), s.letters, name)
}

// payment returns a record of the topic, as a CloudEvent in binary mode.
func payment(topic, id, account string, more ...string) *kgo.Record {
	r := &kgo.Record{Topic: topic, Key: []byte(account), Value: []byte(`{"account":"` + account + `"}`)}
	for i := 0; i+1 < len(more); i += 2 {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: more[i], Value: []byte(more[i+1])})
	}
	for name, value := range map[string]string{"ce_id": id, "ce_source": "shop", "ce_specversion": "1.0", "ce_type": "payment"} {
		if id != "" {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
		}
	}
	return r
}

// letterOf returns the headers that a consumer's dead letter must have.
func (s deadLetterFixture) letterOf(consumer, offset string) []string {
	return []string{"semel-reason", "permanent failure", "semel-error", "by hand", "semel-attempts", "1", "semel-consumer", s.name(consumer),
		"semel-topic", s.topic, "semel-partition", "0", "semel-offset", offset, "semel-time", time.Now().UTC().Format(time.RFC3339Nano)}
}

func (s fixture) semel(t *testing.T, code int, args ...string) string {
	t.Helper()
	cmd := s.command(args...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if have := cmd.ProcessState.ExitCode(); have != code {
		t.Fatalf("semel %s: exit code %d, not %d\n%s%s", strings.Join(args, " "), have, code, &out, &log)
	}
	return out.String()
}

// deadRow is a dead letter in the dead-letter topic, or the result of its retry.
type deadRow struct {
	Place, Stands, ID, Why, Predicted, Result string
	Row                                       int64
	Cut                                       bool
}

// deadDocument is the JSON output of the commands that list or replay dead letters.
type deadDocument struct {
	Rows, Results       []deadRow
	Predicted, Happened map[string]int
	Changed             int
}

func (s deadLetterFixture) dead(t *testing.T, code int, args ...string) deadDocument {
	t.Helper()
	text := s.semel(t, code, append([]string{"messages"}, append(args, "--config", "dead.yaml", "-o", "json")...)...)
	var d deadDocument
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return d
}

func (d deadDocument) standings() []string {
	var all []string
	for _, l := range d.Rows {
		all = append(all, l.ID+" "+l.Stands)
	}
	return all
}

func TestTheLettersOfATopicAreListedAsWhatTheyAre(t *testing.T) {
	s := newDeadLetterFixture(t)
	ids := []string{"a", "b", "c", "d"}
	for _, id := range ids {
		s.produce(t, payment(s.topic, id, "eve"))
	}
	s.run(t, "dead.yaml", 0)
	all := s.letterOf("billing", "0")
	cut := append(slices.Clone(all), "semel-length", "200000")
	s.produce(t, payment(s.letters, "x", "eve"), // a dead letter that another program wrote
		payment(s.letters, "e", "eve", s.letterOf("nobody", "9")...),
		payment(s.letters, "", "eve", all...),
		payment(s.letters, "a", "mallory", all...),
		payment(s.letters, "f", "eve", cut...),
		payment(s.letters, "b", "eve", cut...),
		payment(s.letters, "g", "eve", all...))
	consumer := []string{"--consumer", s.name("billing"), "--topic", s.letters}
	list := func(t *testing.T) deadDocument { return s.dead(t, 0, append([]string{"ls"}, consumer...)...) }
	replay := func(t *testing.T, code int, more ...string) deadDocument {
		return s.dead(t, code, append(append([]string{"retry", "--all", "--yes", "--because", "account opened", "--as", "ann"}, consumer...), more...)...)
	}
	t.Run("G4_foreign_records_changed_payloads_and_cut_letters_stand_beside_the_others", func(t *testing.T) {
		var mine []string
		for _, l := range list(t).standings() {
			if !strings.HasSuffix(l, " foreign") {
				mine = append(mine, l)
			}
		}
		want := []string{"a parked or dead", "b parked or dead", "c parked or dead", "d parked or dead", " no identity", "a conflict", "f cut", "b parked or dead", "g unknown here"}
		if !slices.Equal(mine, want) {
			t.Errorf("they are %q,\nnot %q", mine, want)
		}
		if n := len(list(t).Rows); n != 4+4+7 {
			t.Errorf("%d letters are listed", n)
		}
	})
	t.Run("G4_a_letter_of_a_topic_is_shown_with_how_it_stands", func(t *testing.T) {
		place := list(t).Rows[0].Place
		shown := s.semel(t, 0, "messages", "show", place, "--config", "dead.yaml", "--consumer", s.name("billing"), "--payload")
		for _, want := range []string{"place ", "state ", "reason ", "header ", `{"account":"eve"}`} {
			if !strings.Contains(shown, want) {
				t.Errorf("%q is missing in\n%s", want, shown)
			}
		}
		if hidden := s.semel(t, 0, "messages", "show", place, "--config", "dead.yaml", "--consumer", s.name("billing")); strings.Contains(hidden, "account\"") {
			t.Errorf("the payload is shown:\n%s", hidden)
		}
		s.semel(t, 1, "messages", "show", s.letters+"/0/9999", "--config", "dead.yaml", "--consumer", s.name("billing"))
		s.semel(t, 2, "messages", "show", "a/b/c", "--config", "dead.yaml", "--consumer", s.name("billing"))
	})
	services.Exec(t, s.dsn, `insert into accounts values ('eve')`)
	t.Run("K8_the_commands_of_the_page_work", func(t *testing.T) {
		for command, code := range map[string]int{
			`semel messages ls --config dead.yaml --consumer billing --topic payments-dead`:                                           0,
			`semel messages show payments-dead/0/1 --config dead.yaml --consumer billing --payload`:                                   0,
			`semel messages retry --config dead.yaml --consumer billing --topic payments-dead --all --dry-run`:                        1,
			`semel messages retry --config dead.yaml --consumer billing --topic payments-dead --all --run --because 'account opened'`: 1,
		} {
			command = strings.NewReplacer("billing", s.name("other"), "payments-dead", s.letters, "'account opened'", "opened").Replace(command)
			s.semel(t, code, strings.Fields(command)[1:]...)
		}
		s.wantOnce(t, "other", 4)
	})
	t.Run("trap_T49_a_letter_of_another_consumer_and_what_the_store_does_not_know_are_refused", func(t *testing.T) {
		d := replay(t, 1, "--dry-run")
		if d.Predicted["applied"] != 4 || d.Predicted["conflict"] != 1 || d.Predicted["skipped as applied"] != 1 || d.Predicted["refused"] != 4 {
			t.Errorf("predicted: %v", d.Predicted)
		}
	})
	t.Run("G4_a_replay_of_a_topic_is_as_it_was_foretold", func(t *testing.T) {
		d := replay(t, 1, "--run")
		if d.Changed != 0 || d.Happened["applied"] != 5 {
			t.Errorf("predicted %v, happened %v: %+v", d.Predicted, d.Happened, d.Results)
		}
		s.wantOnce(t, "billing", 5)
	})
	t.Run("G4_replayed_twice_it_has_one_effect", func(t *testing.T) {
		d := replay(t, 1, "--run")
		if d.Changed != 0 || d.Happened["applied"] != 0 || d.Happened["skipped as applied"] != 6 {
			t.Errorf("happened: %v", d.Happened)
		}
		s.wantOnce(t, "billing", 5)
	})
}

func TestLettersOfWhichNobodyKnowsWhetherTheyTookEffect(t *testing.T) {
	s := newDeadLetterFixture(t)
	services.Exec(t, s.dsn, `insert into accounts values ('eve')`)
	for _, id := range []string{"a", "b"} {
		s.produce(t, payment(s.topic, id, "eve"))
	}
	s.run(t, "dead.yaml", 0)
	replay := func(t *testing.T, code int, more ...string) deadDocument {
		return s.dead(t, code, append([]string{"retry", "--all", "--run", "--because", "test", "--consumer", s.name("billing"), "--topic", s.letters}, more...)...)
	}
	t.Run("trap_T49_what_the_store_has_not_got_as_far_as_is_another_store_s", func(t *testing.T) {
		s.produce(t, payment(s.letters, "far", "eve", s.letterOf("billing", "999")...))
		d := replay(t, 1)
		if d.Happened["refused"] != 1 || !strings.Contains(d.Results[0].Why, "another store") {
			t.Errorf("%+v", d)
		}
		s.wantOnce(t, "billing", 2)
		if d := replay(t, 0, "--force"); d.Happened["applied"] != 1 {
			t.Errorf("by force: %+v", d)
		}
		if acts := s.semel(t, 0, "audit", "ls", "--config", "dead.yaml", "-o", "json"); !strings.Contains(acts, "1 message of topic "+s.letters) {
			t.Errorf("a letter without a row was given to the consumer, and no act says so: %s", acts)
		}
		s.wantOnce(t, "billing", 3)
	})
	t.Run("trap_20_what_is_older_than_the_markers_that_are_kept_is_refused_and_by_force_set_aside", func(t *testing.T) {
		services.Exec(t, s.dsn, `update semel_scopes set low = now() + interval '1 minute'`)
		s.produce(t, payment(s.letters, "old", "eve", s.letterOf("billing", "0")...))
		d := replay(t, 1)
		if d.Happened["refused"] != 1 || d.Happened["skipped as applied"] != 1 || !strings.Contains(d.Results[1].Why, "older than the markers") {
			t.Errorf("%+v", d)
		}
		s.wantOnce(t, "billing", 3)
		replay(t, 1, "--force")
		s.wantOnce(t, "billing", 3)
		if d := s.dead(t, 0, "retry", "--all", "--reason", "too old", "--run", "--because", "it did not take effect"); d.Happened["applied"] != 1 {
			t.Errorf("its row: %+v", d)
		}
		s.wantOnce(t, "billing", 4)
	})
}
