//go:build unix

// Package dead kills consumers between the copy of a dead letter to its topic and the ack of the message, with a real
// broker and PostgreSQL.
package dead

import (
	"testing"

	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/itest/services"
)

// deathOrders returns orders for all points with one worker. For the points between the copy of a dead letter
// and the ack, the result also contains orders with three workers.
func deathOrders() (all []order) {
	for _, point := range []string{beforeCopy, duringCopy, afterCopy} {
		all = append(all, order{Death: point, After: 1, Workers: 1})
	}
	for _, point := range faults.Points() {
		all = append(all, order{Death: string(point), After: 1, Workers: 1})
	}
	for _, point := range []faults.Point{afterCopy, faults.AfterMark, faults.BeforeCommit, faults.AfterCommit, faults.BeforeSettle} {
		all = append(all, order{Death: string(point), After: 3, Workers: 3})
	}
	return all
}

func TestConsumersThatAreKilledAroundDeadLetters(t *testing.T) {
	t.Run("trap_T48_a_process_killed_between_copy_and_settle_loses_no_dead_letter_and_marks_each_once", func(t *testing.T) {
		cluster := services.StartKafka(t, services.KafkaOptions{})
		w := newWorld(t, cluster.Brokers())
		w.broker = cluster.Node(0)
		var copied, marked int
		for _, d := range deathOrders() {
			w.publish(24)
			o := w.order
			o.Death, o.After, o.Workers = d.Death, d.After, d.Workers
			if !w.runChild(o) {
				t.Errorf("nobody died at %s", d.Death)
			}
			b := w.audit()
			t.Logf("killed at %s with %d workers: %d were copied and not marked, %d marked and not settled", d.Death, d.Workers, b.copied, b.marked)
			copied, marked = copied+b.copied, marked+b.marked
		}
		if copied < 5 || marked < 3 {
			t.Errorf("the deaths met %d messages between copy and mark and %d between mark and settlement: no proof", copied, marked)
		}
		o := w.order
		o.Workers = 2
		w.runChild(o)
		t.Logf("%d messages have a second dead letter", w.complete())
	})
}
