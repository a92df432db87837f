//go:build unix

package kafka

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/services"
)

// reconcileOutput is the JSON output of `semel reconcile`.
type reconcileOutput struct {
	Sent, Applied, Missing, Doubled, Unusable, Late int
	Findings                                        []struct{ What, ID string }
}

func (s fixture) reconcile(t *testing.T, want int, args ...string) (r reconcileOutput, log string) {
	t.Helper()
	out, log, code := s.runCommand(t, append([]string{"reconcile", s.name("billing"), "--config", "p.yaml", "-o", "json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != want {
		t.Fatalf("exit code %d, want %d: %v\n%s\n%s", code, want, err, out, log)
	}
	return r, log
}

// runCommand runs a command and returns its output, its log and its exit code.
func (s fixture) runCommand(t *testing.T, args ...string) (out, log string, code int) {
	t.Helper()
	cmd := s.command(args...)
	var o, l bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &l
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait() // the caller checks the exit code
	return o.String(), l.String(), cmd.ProcessState.ExitCode()
}

func TestATopicIsComparedWithWhatWasApplied(t *testing.T) {
	s := newFixture(t, 3)
	s.policy(t, "p.yaml", "", s.consumer("billing", "payments", ""))
	s.produce(t, s.makePayments(1, 300)...)
	nobody := s.makePayments(1, 1)[0]
	nobody.Headers = nobody.Headers[1:]
	s.run(t, "p.yaml", 0)
	t.Run("G7_all_that_was_applied_is_found_without_a_group", func(t *testing.T) {
		r, log := s.reconcile(t, 0, "--topic", s.topic, "--effects", "select payment, 'shop' from entries")
		if r.Sent != 300 || r.Applied != 300 || !strings.Contains(log, "at most 330 records are compared") {
			t.Errorf("%+v\n%s", r, log)
		}
	})
	t.Run("G7_what_was_lost_and_doubled_is_found_and_nothing_else", func(t *testing.T) {
		services.Exec(t, s.dsn, "delete from public.semel_markers where id = convert_to(chr(1) || 'p17', 'UTF8') or substr(id, 2) = 'p17'::bytea",
			"delete from entries where payment = 'p17'", "insert into entries select * from entries where payment = 'p5'")
		r, _ := s.reconcile(t, 4, "--topic", s.topic, "--grace", "0s", "--effects", "select payment from entries")
		if r.Sent != 300 || r.Applied != 298 || r.Missing != 1 || r.Doubled != 1 || len(r.Findings) != 2 {
			t.Errorf("%+v", r)
		}
		if got := fmt.Sprint(r.Findings); !strings.Contains(got, "{missing p17}") || !strings.Contains(got, "{doubled p5}") {
			t.Errorf("%s", got)
		}
	})
	t.Run("G7_live_traffic_behind_the_cut_is_not_compared", func(t *testing.T) {
		cut := time.Now().UTC().Add(time.Second).Format(time.RFC3339Nano)
		waitUntil(t, "the cut", func() bool { return time.Now().UTC().Format(time.RFC3339Nano) > cut })
		s.produce(t, append(s.makePayments(301, 320), nobody)...)
		if r, _ := s.reconcile(t, 4, "--topic", s.topic, "--to", cut, "--grace", "0s"); r.Sent != 300 || r.Missing != 1 || r.Unusable != 0 {
			t.Errorf("%+v", r)
		}
		if r, _ := s.reconcile(t, 4, "--topic", s.topic, "--from", cut, "--grace", "0s"); r.Sent != 20 || r.Missing != 20 || r.Unusable != 1 {
			t.Errorf("%+v", r)
		}
		if r, _ := s.reconcile(t, 4, "--topic", s.topic, "--grace", "1h"); r.Late != 21 || r.Missing != 0 || r.Unusable != 1 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("G7_by_a_query_of_what_was_sent", func(t *testing.T) {
		r, _ := s.reconcile(t, 4, "--sql", "select 'p' || n, 'shop' from generate_series(1, 20) n")
		if r.Sent != 20 || r.Applied != 19 || r.Missing != 1 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("G7_nothing_was_committed_for_the_group", func(t *testing.T) {
		if n := s.groupLag(t, "billing"); n != 23 {
			t.Errorf("the group is %d behind", n)
		}
	})
	t.Run("bad_input", func(t *testing.T) {
		for says, args := range map[string][]string{
			"give one of --file, --topic and --sql":    {"--topic", s.topic, "--sql", "select 1"},
			"--from and --to are of --topic":           {"--sql", "select 1", "--to", "1h"},
			"nothing lies between":                     {"--topic", s.topic, "--from", "1h", "--to", "2h"},
			"--to \"soon\" is no time":                 {"--topic", s.topic, "--to", "soon"},
			"give how long a message may be on its":    {"--topic", s.topic, "--grace", "-1s"},
			"--topic is empty, which would choose all": {"--topic", ""},
		} {
			_, log, code := s.runCommand(t, append([]string{"reconcile", s.name("billing"), "--config", "p.yaml"}, args...)...)
			if code != 2 || !strings.Contains(log, says) {
				t.Errorf("%q: exit code %d: %s", args, code, log)
			}
		}
		if _, log, code := s.runCommand(t, "reconcile", s.name("billing"), "--config", "p.yaml", "--topic", "no-such-topic"); code != 1 || !strings.Contains(log, "no-such-topic") {
			t.Errorf("exit code %d: %s", code, log)
		}
	})
}
