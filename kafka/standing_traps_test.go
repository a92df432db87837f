package kafka

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
)

// standing begins a run that would end after 10 s of emptiness and whose lane 0
// stands still by a fault that cause makes; it returns the run and its log.
func (w *world) lastMove(idle time.Duration, change func(*Config), cause func()) (*process, *lockedBuffer) {
	w.t.Helper()
	w.publish(0, numbered("a", 1, 10)...)
	if err := w.start(count, nil, whenIdle).ends(w.t); err != nil {
		w.t.Fatal(err)
	}
	w.publish(0, numbered("a", 11, 30)...)
	w.publish(1, "beside")
	cause()
	text := &lockedBuffer{}
	log := slog.New(slog.NewTextHandler(text, nil))
	return w.start(count, func(c *Config) {
		c.Logger = log
		if change != nil {
			change(c)
		}
	}, func(c *settings) { c.Logger, c.IdleExit = log, idle }), text
}

func TestALaneThatStandsStillIsNotASourceThatDoesNotWork(t *testing.T) {
	for name, cause := range map[string]func(w *world){
		"trap_T95_a_run_with_a_long_wait_ends_where_records_were_lost": func(w *world) {
			if err := w.cluster.DeleteRecords(theTopic, 0, 20); err != nil {
				w.t.Fatal(err)
			}
		},
		"trap_T95_a_run_with_a_long_wait_ends_where_a_batch_is_damaged": func(w *world) { w.spoil(10, 1<<40) },
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, 2)
			began := time.Now()
			p, text := w.lastMove(20*time.Second, nil, func() { cause(w) })
			if err := p.ends(t); !errors.Is(err, semel.ErrUnfinished) || !strings.Contains(err.Error(), "orders/0") {
				t.Errorf("the run says: %v", err)
			}
			if took := time.Since(began); took > 4*time.Minute {
				t.Errorf("it took %v", took)
			}
			w.once("beside")
			if left := p.consumer.Unfinished(); len(left) != 1 || !left[0].Fault || left[0].Lane != "orders/0" {
				t.Errorf("left is %+v", left)
			}
			if !strings.Contains(text.String(), "a partition stands still") {
				t.Errorf("the log does not tell it:\n%.3000s", text.String())
			}
		})
	}
	bubble(t, "trap_T95_a_run_with_a_long_wait_ends_where_the_brokers_refuse_a_read", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "a")
		if err := w.start(count, nil, whenIdle).ends(t); err != nil {
			t.Fatal(err)
		}
		w.publish(0, "b")
		w.refuseFetches()
		p := w.start(count, nil, func(c *settings) { c.IdleExit = 20 * time.Second })
		if err := p.ends(t); !errors.Is(err, semel.ErrUnfinished) || !strings.Contains(err.Error(), "nothing is read behind offset 1") {
			t.Errorf("the run says: %v", err)
		}
	})
	bubble(t, "trap_T86_it_is_told_once_a_minute_by_name_and_the_source_works", func(t *testing.T) {
		w := newWorld(t, 2)
		p, text := w.lastMove(0, nil, func() {
			if err := w.cluster.DeleteRecords(theTopic, 0, 20); err != nil {
				t.Fatal(err)
			}
		})
		pass(10 * time.Minute)
		w.once("beside")
		if n := strings.Count(text.String(), "a partition stands still"); n < 9 || n > 12 {
			t.Errorf("it is told %d times within ten minutes:\n%.3000s", n, text.String())
		}
		if strings.Contains(text.String(), "source does not work") || strings.Contains(text.String(), "works again") {
			t.Errorf("the log says that the source does not work:\n%.3000s", text.String())
		}
		if ready, why := p.consumer.Ready(); !ready || !strings.Contains(why, "orders/0 stands still") {
			t.Errorf("ready %t: %q", ready, why)
		}
		if faults := p.source.Info().LaneFaults(); len(faults) != 1 || faults[0].Lane != "orders/0" || faults[0].Messages != 20 {
			t.Errorf("its faults are %+v", faults)
		}
	})
	bubble(t, "I6_a_run_that_goes_on_behind_lost_records_does_not_end_before_it_has", func(t *testing.T) {
		w := newWorld(t, 2)
		p, _ := w.lastMove(time.Second, func(c *Config) { c.OnLostRecords = GoOn }, func() {
			if err := w.cluster.DeleteRecords(theTopic, 0, 20); err != nil {
				t.Fatal(err)
			}
		})
		if err := p.ends(t); err != nil || len(p.consumer.Unfinished()) > 0 {
			t.Errorf("%v, left %+v", err, p.consumer.Unfinished())
		}
		w.once(append(numbered("a", 21, 30), "beside")...)
	})
}

// stands fetches until a lane stands still, and returns why. What is delivered
// meanwhile and an error of Fetch fail.
func (r *reader) stands() string {
	r.t.Helper()
	ctx, cancel := contextFor(r.t, patience)
	defer cancel()
	for ctx.Err() == nil {
		if faults := r.Info().LaneFaults(); len(faults) > 0 {
			return faults[0].Reason
		}
		short, end := contextFor(r.t, 100*time.Millisecond)
		got, err := r.Fetch(short, wide)
		end()
		if len(got) > 0 || err != nil && short.Err() == nil {
			r.t.Fatalf("came %s, %v", shown(got), err)
		}
	}
	r.t.Fatal("no lane stands still")
	return ""
}
