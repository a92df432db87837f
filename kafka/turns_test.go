package kafka

import (
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel/source"
)

// held reports whether an assignment waits at the gate or has passed it.
func (g *gate) held() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.holders > 0
}

// betweenPollAndLane lets the group forget a reader after it has polled records
// and before they have found their lane, and waits until the partition is about
// to be given again, or would be if nothing held that up.
func (r *reader) betweenPollAndLane(forget func()) {
	forget()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		if timesTold(r.notes(), "given orders/0") == 2 || r.gate.held() {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			r.t.Errorf("the partition is not given again; the observer was told %v", r.notes())
			return
		}
	}
}

func TestPollsAndAssignmentsTakeTurns(t *testing.T) {
	t.Parallel() // the client hears with a heartbeat that it was forgotten
	t.Run("law_8_what_was_polled_before_a_partition_is_given_again_is_not_of_its_new_epoch", func(t *testing.T) {
		config, c := setUp(t)
		config.SessionTimeout = 6 * time.Second // a heartbeat every two
		put(t, c, "orders", 0, values(10)...)
		r := read(t, config)
		former := r.take(5) // and settles none of them
		happened := false
		r.between = func() {
			if !happened {
				happened = true
				r.betweenPollAndLane(func() { remove(t, c, r) })
			}
		}
		var latter []source.Delivery
		for len(latter) < 10 {
			got := r.take(1)
			if got[0].Lane == former[0].Lane {
				t.Fatalf("the former epoch delivered %s after the partition was lost", got[0].Message.Body)
			}
			if want := fmt.Sprint(len(latter)); string(got[0].Message.Body) != want {
				t.Fatalf("law 8: the new epoch delivers %s where %s is next; what lies between would count as done", got[0].Message.Body, want)
			}
			r.ack(got...)
			latter = append(latter, got...)
		}
		if !happened {
			t.Fatal("nothing happened between a poll and its lanes")
		}
		if at := offset(t, c, "billing", "orders", 0); at != 10 {
			t.Errorf("the group's offset is %d, not 10", at)
		}
	})
}
