//go:build unix

package kafka

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/services"
)

func TestSeveralConsumersInOneProcess(t *testing.T) {
	s := newFixture(t, 3)
	s.write(t, "lines.jsonl", `{"specversion":"1.0","id":"l1","source":"shop","type":"payment","data":{"amount":1}}`+"\n")
	poison := s.makePayments(201, 201)[0]
	poison.Value = []byte(`{"amount":0}`) // the database divides by it
	s.produce(t, append(s.makePayments(1, 200), poison)...)
	s.policy(t, "p.yaml", "", s.consumer("billing", "payments", ""), s.consumer("audit", "payments", "lanes: none"),
		s.consumer("lines", "lines", ""), s.consumer("strict", "payments", "workers: 1\n    retry: {max_attempts: 1, on_exhausted: halt}"))
	counts, log := s.run(t, "p.yaml", 1)
	each := semel.Counts{Deliveries: 221, Applied: 200, Duplicates: 20, Parked: 1}
	t.Run("each_consumer_gets_every_record_in_a_group_of_its_own", func(t *testing.T) {
		for _, name := range []string{"billing", "audit"} {
			if counts[name] != each {
				t.Errorf("%s: %+v", name, counts[name])
			}
			s.wantOnce(t, name, 200)
			if n := s.groupLag(t, name); n != 0 {
				t.Errorf("%s is %d behind", name, n)
			}
		}
	})
	t.Run("files_and_topics_stand_side_by_side", func(t *testing.T) {
		if got := counts["lines"]; got != (semel.Counts{Deliveries: 1, Applied: 1}) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("one_that_halts_ends_alone_and_is_named", func(t *testing.T) {
		if got := counts["strict"]; got.Failed != 1 {
			t.Errorf("%+v", got)
		}
		if !strings.Contains(log, "consumer "+s.name("strict")) {
			t.Errorf("the error does not name it: %s", log)
		}
	})
	t.Run("another_run_applies_nothing", func(t *testing.T) {
		again, _ := s.run(t, "p.yaml", 1) // the consumer "strict" gets its message again
		if again["billing"] != (semel.Counts{}) || again["audit"] != (semel.Counts{}) {
			t.Errorf("%+v", again)
		}
		s.wantOnce(t, "billing", 200)
	})
}

func TestARunThatWasStoppedGoesOnWhereItWas(t *testing.T) {
	s := newFixture(t, 3)
	s.policy(t, "p.yaml", "protocol: next_gen", s.consumer("billing", "payments", ""))
	s.produce(t, s.makePayments(1, 500)...)
	cmd := s.command("run", "--config", "p.yaml")
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "effects", func() bool { all, _ := s.countEntries(t, "billing"); return all == 500 })
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("a stop is no failure: %v: %s", err, &log)
	}
	counts, _ := s.run(t, "p.yaml", 0)
	if counts["billing"].Applied != 0 || counts["billing"].Deliveries > 50 {
		t.Errorf("after a stop that drained: %+v", counts["billing"])
	}
	s.wantOnce(t, "billing", 500)
}

func TestDeadLettersGoToTheirTopic(t *testing.T) {
	s := newFixture(t, 2)
	dead := services.Topic(t, s.brokers, 1)
	s.policy(t, "p.yaml", "", s.consumer("billing", "payments",
		"retry: {max_attempts: 1, on_exhausted: dead_letter}\n    on_conflict: dead_letter\n    on_bad_identity: dead_letter\n    dead_letter: {topic: "+dead+"}"))
	poison, conflict, nameless := s.makePayments(11, 11)[0], s.makePayments(1, 1)[0], s.makePayments(12, 12)[0]
	poison.Value, conflict.Value, nameless.Headers = []byte(`{"amount":0}`), []byte(`{"amount":2}`), nameless.Headers[1:]
	s.produce(t, append(s.makePayments(1, 9), poison, conflict, nameless)...)
	counts, _ := s.run(t, "p.yaml", 0)
	if got := counts["billing"]; got.Applied != 9 || got.DeadLettered+got.Conflicts != 3 || got.Deliveries != 12 {
		t.Errorf("%+v", got)
	}
	letters := map[string]*kgo.Record{}
	for _, r := range s.readRecords(t, dead) {
		letters[header(r, "semel-reason")] = r
	}
	for reason, was := range map[string]*kgo.Record{"permanent failure": poison, "conflict": conflict, "no identity": nameless} {
		t.Run(strings.ReplaceAll(reason, " ", "_"), func(t *testing.T) { wantLetter(t, letters[reason], was, s.name("billing")) })
	}
	t.Run("trap_T48_nothing_is_copied_again_and_nothing_left_behind", func(t *testing.T) {
		if again, _ := s.run(t, "p.yaml", 0); again["billing"] != (semel.Counts{}) || s.groupLag(t, "billing") != 0 {
			t.Errorf("%+v", again)
		}
		if n := len(s.readRecords(t, dead)); n != 3 {
			t.Errorf("%d dead letters of 3 messages", n)
		}
	})
	t.Run("a_copy_that_is_sent_again_is_a_duplicate", func(t *testing.T) {
		s.produce(t, &kgo.Record{Topic: s.topic, Key: poison.Key, Value: poison.Value, Headers: letters["permanent failure"].Headers})
		if again, _ := s.run(t, "p.yaml", 0); again["billing"] != (semel.Counts{Deliveries: 1, Duplicates: 1}) {
			t.Errorf("%+v", again)
		}
	})
}

// wantLetter checks a dead letter: the copy of the record, its origin and its reason.
func wantLetter(t *testing.T, letter, was *kgo.Record, consumer string) {
	t.Helper()
	if letter == nil {
		t.Fatal("there is none")
	}
	if !bytes.Equal(letter.Key, was.Key) || !bytes.Equal(letter.Value, was.Value) {
		t.Errorf("%s: %s", letter.Key, letter.Value)
	}
	for _, h := range was.Headers {
		if header(letter, h.Key) != string(h.Value) {
			t.Errorf("the header %s is %q", h.Key, header(letter, h.Key))
		}
	}
	if header(letter, "semel-consumer") != consumer || header(letter, "semel-topic") != was.Topic ||
		header(letter, "semel-partition") != fmt.Sprint(was.Partition) || header(letter, "semel-offset") != fmt.Sprint(was.Offset) {
		t.Errorf("its origin: %v", letter.Headers)
	}
	if at, err := time.Parse(time.RFC3339Nano, header(letter, "semel-time")); err != nil || time.Since(at).Abs() > time.Hour {
		t.Errorf("its time: %v %v", at, err)
	}
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

func TestATopicThatIsConsumedAlreadyIsTakenOver(t *testing.T) {
	s := newFixture(t, 3)
	s.produce(t, s.makePayments(1, 99)...)
	s.policy(t, "old.yaml", "", s.consumer("old", "payments", ""))
	s.run(t, "old.yaml", 0)
	between := time.Now().UTC().Add(2 * time.Second)
	s.policy(t, "now.yaml", "start: now", s.consumer("now", "payments", ""))
	if counts, _ := s.run(t, "now.yaml", 0); counts["now"] != (semel.Counts{}) {
		t.Errorf("what was there before: %+v", counts)
	}
	waitUntil(t, "time", func() bool { return time.Now().After(between) })
	s.produce(t, s.makePayments(101, 109)...)
	s.policy(t, "group.yaml", "start: {group: "+s.name("old")+"}", s.consumer("group", "payments", ""))
	s.policy(t, "at.yaml", "start: {at: "+between.Format(time.RFC3339)+"}", s.consumer("at", "payments", ""))
	s.policy(t, "all.yaml", "start: earliest", s.consumer("all", "payments", ""))
	for name, want := range map[string]int{"now": 9, "group": 9, "at": 9, "all": 108} {
		t.Run(name, func(t *testing.T) {
			counts, _ := s.run(t, name+".yaml", 0)
			if got := counts[name]; int(got.Applied) != want {
				t.Errorf("%+v, want %d applied", got, want)
			}
			s.wantOnce(t, name, want)
		})
	}
}
