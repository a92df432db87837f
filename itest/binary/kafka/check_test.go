//go:build unix

package kafka

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/semel-go/semel/itest/services"
)

// runCheck runs `semel check` and returns the numbers of the checks that have the given result.
func (l *loadFixture) runCheck(code int, policy, result string) (numbers []int) {
	l.t.Helper()
	out, _ := l.call(code, "check", "-o", "json", "--config", policy)
	var c struct {
		Consumers []struct {
			Answers []struct {
				Number int
				Result string
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		l.t.Fatalf("%v: %s", err, out)
	}
	for _, a := range c.Consumers[0].Answers {
		if a.Result == result {
			numbers = append(numbers, a.Number)
		}
	}
	return numbers
}

func TestCheckAsksTheBrokers(t *testing.T) {
	l := newLoaded(t)
	policy := func(name, source, retention string) {
		l.policy(t, name, source, l.consumer("billing", "payments", "effect: {kind: ledger, says: a second one books twice}\n    retention: "+retention))
	}
	policy("semel.yaml", restoring, "30d")
	t.Run("K3_a_topic_that_is_never_emptied", func(t *testing.T) {
		if failed := l.runCheck(4, "semel.yaml", "fail"); fmt.Sprint(failed) != "[7 13]" {
			t.Errorf("%v fail", failed)
		}
	})
	day := "86400000"
	settings := []kadm.AlterConfig{{Name: "retention.ms", Value: &day}, {Name: "segment.ms", Value: &day}}
	if _, err := kadm.NewClient(l.client(t)).AlterTopicConfigs(t.Context(), settings, l.topic); err != nil {
		t.Fatal(err)
	}
	l.produce(t, l.makePayments(1, 40)...)
	l.run(t, "semel.yaml", 0)
	t.Run("K3_a_sound_consumer", func(t *testing.T) {
		if failed := l.runCheck(0, "semel.yaml", "fail"); len(failed) > 0 {
			t.Errorf("%v fail", failed)
		}
		if unknown := l.runCheck(0, "semel.yaml", "cannot_know"); slices.Contains(unknown, 13) || slices.Contains(unknown, 22) {
			t.Errorf("%v cannot be known", unknown)
		}
	})
	t.Run("K3_retention_under_what_the_topic_keeps", func(t *testing.T) {
		policy("short.yaml", restoring, "1h")
		if failed := l.runCheck(4, "short.yaml", "fail"); fmt.Sprint(failed) != "[12 13]" {
			t.Errorf("%v fail", failed)
		}
	})
	t.Run("K3_what_was_aborted_is_read", func(t *testing.T) {
		policy("dirty.yaml", restoring+"\n      isolation: read_uncommitted", "30d")
		if failed := l.runCheck(4, "dirty.yaml", "fail"); fmt.Sprint(failed) != "[23]" {
			t.Errorf("%v fail", failed)
		}
	})
	t.Run("K3_offsets_without_markers", func(t *testing.T) {
		services.Exec(t, l.dsn, `update semel_positions set "offset" = 0 where lane like 'kafka:%/%@%'`)
		if failed := l.runCheck(4, "semel.yaml", "fail"); fmt.Sprint(failed) != "[22]" {
			t.Errorf("%v fail", failed)
		}
	})
	t.Run("K3_a_store_that_is_away", func(t *testing.T) {
		away := *l
		away.t, away.dsn = t, "postgres://nobody@127.0.0.1:1/none?sslmode=disable"
		if unknown := away.runCheck(0, "semel.yaml", "cannot_know"); !slices.Contains(unknown, 22) || slices.Contains(unknown, 13) {
			t.Errorf("%v cannot be known", unknown)
		}
	})
}
