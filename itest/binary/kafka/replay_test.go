//go:build unix

package kafka

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/itest/services"
)

// replay runs a replay command, which must succeed, and decodes its JSON output.
func (s fixture) replay(t *testing.T, into any, args ...string) {
	t.Helper()
	cmd := s.command(append([]string{"replay"}, append(args, s.name("billing"), "--config", "p.yaml", "-o", "json")...)...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v: %s", args, err, &log)
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		t.Fatalf("%v: %v in %s", args, err, &out)
	}
}

func TestATopicIsReplayed(t *testing.T) {
	s := newFixture(t, 3)
	s.policy(t, "p.yaml", "", s.consumer("billing", "payments", "replay: {allowed: true}"))
	s.produce(t, s.makePayments(1, 300)...)
	s.run(t, "p.yaml", 0)
	s.wantOnce(t, "billing", 300)
	s.produce(t, s.makePayments(301, 320)...) // the group has not read the payments 301 to 320 yet
	lost := fmt.Sprintf("scope in (select number from semel_scopes where consumer = convert_to('%s', 'UTF8')) and substring(id from 2) in (select convert_to('p' || n, 'UTF8') from generate_series(1, 40) n)", s.name("billing"))
	services.Exec(t, s.dsn, "delete from semel_markers where "+lost)
	services.Exec(t, s.dsn, "delete from entries where payment in (select 'p' || n from generate_series(1, 40) n)")
	before := s.readOffsets(t)

	var plan struct{ Would admin.ReplayCounts }
	s.replay(t, &plan, "plan")
	want := admin.ReplayCounts{Read: 352, Applied: 60, Skipped: 292}
	t.Run("G1_what_it_would_do_is_said_in_advance", func(t *testing.T) {
		if plan.Would != want {
			t.Errorf("%+v, want %+v", plan.Would, want)
		}
		s.wantOnce(t, "billing", 260)
	})
	var done struct {
		State     admin.ReplayState
		Counts    admin.ReplayCounts
		Predicted admin.ReplayCounts
	}
	s.replay(t, &done, "start", "--because", "markers were lost")
	t.Run("G1_law_14_what_is_missing_is_applied_once_and_as_foretold", func(t *testing.T) {
		if done.State != admin.ReplayDone || done.Counts != want || done.Predicted != want {
			t.Errorf("%+v, want %+v", done, want)
		}
		s.wantOnce(t, "billing", 320)
	})
	t.Run("trap_T45_the_group_stays_where_it_was_and_its_copies_are_duplicates", func(t *testing.T) {
		if after := s.readOffsets(t); after != before {
			t.Errorf("the group's offsets were %s and are %s", before, after)
		}
		counts, _ := s.run(t, "p.yaml", 0)
		if got := counts["billing"]; got.Applied != 0 || got.Duplicates != 22 {
			t.Errorf("%+v", got)
		}
		s.wantOnce(t, "billing", 320)
	})
}

// readOffsets returns the committed offsets of the consumer group of billing as text, so that a test can compare
// offsets.
func (s fixture) readOffsets(t *testing.T) string {
	t.Helper()
	client := s.client(t)
	defer client.Close()
	all, err := kadm.NewClient(client).FetchOffsets(t.Context(), s.name("billing"))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, o := range all.Sorted() {
		texts = append(texts, fmt.Sprintf("%d:%d", o.Partition, o.At))
	}
	return strings.Join(texts, " ")
}
