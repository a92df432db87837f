//go:build unix

// Package publish tests publishing to real brokers while processes and brokers are killed.
package publish

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/itest/worlds/processes"
	"github.com/twmb/franz-go/pkg/kgo"
)

const workers = 8

// A policy that publishes the lines of a file to a topic.
const moves = `version: 1
stores: {shop: {sqlite: {path: shop.db}, migrate: true}}
sources: {payments: {file: {path: in.jsonl, format: cloudevents}}}
consumers:
  receipts:
    from: payments
    store: shop
    strategy: lease
    alerts: {pending_age: 60s}
    identity: {id: id, source: source}
    workers: %d
    inbox: {lease: 3s, poll: 50ms, max_crashes: 100}
    retry: {max_attempts: 1000, initial_delay: 10ms, max_delay: 1s}
    handler: {kafka: {brokers: "${KAFKA_BROKERS}", topic: %s, timeout: 2s}}
`

// The time limit for all events that a test waits for.
const patience = 3 * time.Minute

// newFolder returns a folder with the policy and a file of n messages.
func newFolder(t *testing.T, topic string, n int) string {
	t.Helper()
	dir := t.TempDir()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"specversion":"1.0","id":"p-%d","source":"shop","type":"payment.made","traceparent":"00-%032x-%016x-01","data":{"payment":%d}}`+"\n", i, i+1, i+1, i)
	}
	for name, text := range map[string]string{"semel.yaml": fmt.Sprintf(moves, workers, topic), "in.jsonl": lines.String()} {
		must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// move starts a process of semel that publishes the messages, and returns its log.
func move(t *testing.T, binary, dir string, brokers []string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(binary, "run")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "KAFKA_BROKERS="+strings.Join(brokers, ","))
	log := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = log, log
	must.OK(t, cmd.Start())
	return cmd, log
}

func countRecords(c *topics.Cluster, topic string) (n int64) {
	for _, end := range c.Ends(topic) {
		n += end
	}
	return n
}

// header returns the value of the first header with this name.
func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

func TestAProcessThatIsKilledWhileItPublishes(t *testing.T) {
	t.Run("E2_K2a_every_message_is_published_and_a_copy_has_the_same_id", func(t *testing.T) {
		const messages, kills = 1500, 6
		binary := must.Get(processes.Build(t.Context(), t.TempDir()))(t)
		brokers := services.Kafka(t)
		topic := services.Topic(t, brokers, 3)
		dir, c := newFolder(t, topic, messages), topics.Open(t, brokers)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		random := rand.New(rand.NewPCG(1, 2))
		for range kills {
			cmd, log := move(t, binary, dir, brokers)
			until := countRecords(c, topic) + 20 + random.Int64N(150)
			for countRecords(c, topic) < until {
				if ctx.Err() != nil {
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
					t.Fatalf("%d records, and no more come: %s", countRecords(c, topic), log)
				}
			}
			must.OK(t, cmd.Process.Kill())
			_ = cmd.Wait()
		}
		for left := true; left; { // the claims of a dead process last until their leases end
			cmd, log := move(t, binary, dir, brokers)
			if err := cmd.Wait(); err != nil || ctx.Err() != nil {
				t.Fatalf("%v, %v: %s", err, ctx.Err(), log)
			}
			left = strings.Contains(log.String(), "are claimed by a process")
		}
		wantAll(t, c.Read(topic), messages, kills*workers)
	})
}

// wantAll checks that every message was published at least once and at most as often as the parameter copies says, and
// that all records of a message are equal.
func wantAll(t *testing.T, records []*kgo.Record, messages, copies int) {
	t.Helper()
	said, again := map[string]string{}, 0
	for _, r := range records {
		id := header(r, "ce_id")
		all := fmt.Sprintf("%s %s %v", r.Key, r.Value, r.Headers)
		if first, known := said[id]; !known {
			said[id] = all
		} else if again++; first != all {
			t.Errorf("%s is %s, and its copy %s", id, first, all)
		}
		if header(r, "ce_source") != "shop" || header(r, "ce_traceparent") == "" || !strings.HasPrefix(string(r.Value), `{"payment":`) {
			t.Errorf("%s", all)
		}
	}
	for i := range messages {
		if id := fmt.Sprint("p-", i); said[id] == "" {
			t.Errorf("%s is lost", id)
		}
	}
	if len(said) != messages || again > copies {
		t.Errorf("%d ids of %d messages, %d copies", len(said), messages, again)
	}
	t.Logf("%d messages, %d records, %d copies", messages, len(records), again)
}
