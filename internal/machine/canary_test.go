package machine

import (
	"fmt"
	"testing"

	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// The engine reports a canary's success with the class of a lost claim, also for messages without a claim.
func TestABatchThatTheEngineRollsBackOnPurpose(t *testing.T) {
	t.Run("L7b_it_runs_again_at_once_and_in_order_without_an_attempt_and_without_a_report", func(t *testing.T) {
		for name, lanes := range map[string]Lanes{"by partition": Partition, "by key": Key, "without order": NoOrder} {
			c := testConfig()
			c.Lanes = lanes
			w := newWorld(t, c)
			all := items(300, "a")
			w.input = [][]*Item{all}
			runs := map[*Item]int{}
			w.handler = func(it *Item) *Failure {
				if runs[it]++; it.Arrival()%7 == 0 && runs[it] == 1 {
					return &Failure{Class: store.ClassClaimLost, Err: errTest}
				}
				return nil
			}
			w.run(10_000)
			for i, it := range all {
				if w.settled[it] != source.EndApplied || it.Attempt() != 1 || w.applied[i] != fmt.Sprint("a", i) {
					t.Fatalf("%s: %s ended as %v after %d attempts; %d. is %s", name, it.Identity, w.settled[it], it.Attempt()-1, i, w.applied[i])
				}
			}
			for _, r := range w.reports {
				if r.Kind != ReportCommitted {
					t.Errorf("%s: a report of %v", name, r.Kind)
				}
			}
			if n := w.m.Counts(); n.Rerun == 0 || n.Retried != 0 || w.now != 0 {
				t.Errorf("%s: %+v after %v", name, n, w.now)
			}
		}
	})
}
