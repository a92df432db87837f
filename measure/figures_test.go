package measure_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/measure"
)

// numbered sets the numbers of a struct to 1, 2, 4 and so on, so that each sum shows which numbers it contains.
func numbered(v reflect.Value, next int64) int64 {
	for i := range v.NumField() {
		switch f := v.Field(i); f.Kind() {
		case reflect.Struct:
			next = numbered(f, next)
		case reflect.Int, reflect.Int64:
			f.SetInt(next)
			next *= 2
		}
	}
	return next
}

// newCollector returns a function each that collects metric values in the map all, by name and labels.
func newCollector(t *testing.T) (all map[string]float64, each func(measure.Figure)) {
	all = map[string]float64{}
	return all, func(f measure.Figure) {
		name := f.Name
		if f.Label != "" {
			name = fmt.Sprintf("%s %s=%s", f.Name, f.Label, f.Value)
		}
		if f.BySource {
			name += " by source"
		}
		if _, twice := all[name]; twice {
			t.Errorf("%s is told twice", name)
		}
		all[name] = f.Is
	}
}

// compare reports the values that differ.
func compare(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, is := range want {
		if n, there := got[name]; !there || n != is {
			t.Errorf("%s is %v, not %v", name, n, is)
		}
	}
	for name := range got {
		if _, known := want[name]; !known {
			t.Errorf("nobody asked for %s", name)
		}
	}
}

func TestEachCountIsReportedUnderItsName(t *testing.T) {
	t.Run("K4_figures_of_counts", func(t *testing.T) {
		var c semel.Counts
		numbered(reflect.ValueOf(&c).Elem(), 1)
		want := map[string]float64{"semel_deliveries_total by source": float64(c.Deliveries)}
		for ending, n := range map[string]int64{
			"applied": c.Applied, "duplicates": c.Duplicates, "conflicts": c.Conflicts, "parked": c.Parked, "dead_lettered": c.DeadLettered,
			"discarded": c.Discarded, "skipped": c.Skipped, "received": c.Received, "waiting": c.Waiting, "failed": c.Failed,
		} {
			want["semel_endings_total ending="+ending+" by source"] = float64(n)
		}
		for outcome, n := range map[string]int64{
			"applied": c.Inbox.Applied, "duplicates": c.Inbox.Duplicates, "waiting": c.Inbox.Waiting, "parked": c.Inbox.Parked, "dead_lettered": c.Inbox.DeadLettered,
			"discarded": c.Inbox.Discarded, "stepped": c.Inbox.Stepped, "released": c.Inbox.Released, "lost": c.Inbox.Lost,
		} {
			want["semel_claims_total outcome="+outcome] = float64(n)
		}
		for name, n := range map[string]int64{
			"effects": c.Applied + c.Inbox.Applied, "duplicates": c.Duplicates + c.Inbox.Duplicates, "conflicts": c.Conflicts, "retries": c.Retried, "reruns": c.Rerun,
			"same_content": c.SameContent, "without_key": c.WithoutKey, "intents_sent_again": c.ReEmitted, "intents_not_sent_again": c.NotReEmitted, "reclaimed": c.Inbox.Reclaimed,
		} {
			want["semel_"+name+"_total"] = float64(n)
		}
		got, each := newCollector(t)
		measure.Figures(c, each)
		compare(t, got, want)
	})
	t.Run("K4_figures_of_a_load", func(t *testing.T) {
		l := measure.Load{Messages: 31, Bytes: 4096, Oldest: 90 * time.Second, Queued: 1, Flying: 2, Held: 4, Riding: 8, Settling: 16, Lanes: 32, Paused: 64, Workers: 128, Stuck: 256}
		got, each := newCollector(t)
		l.Figures(each)
		compare(t, got, map[string]float64{
			"semel_unsettled_messages state=queued": 1, "semel_unsettled_messages state=flying": 2, "semel_unsettled_messages state=held": 4,
			"semel_unsettled_messages state=riding": 8, "semel_unsettled_messages state=settling": 16, "semel_lanes state=given": 32, "semel_lanes state=paused": 64,
			"semel_workers state=all": 128, "semel_workers state=stuck": 256, "semel_unsettled_bytes": 4096, "semel_unsettled_oldest_seconds": 90,
		})
	})
}

func TestAStopwatchAddsUp(t *testing.T) {
	t.Run("K4_and_goes_on_where_it_is_started_or_stopped_again", func(t *testing.T) {
		var s measure.Stopwatch
		began := time.Unix(1000, 0)
		for _, step := range []struct {
			at    time.Duration
			on    bool
			sum   time.Duration
			after time.Duration // the value that is read a second later
		}{
			{0, false, 0, 0}, {5 * time.Second, true, 0, time.Second}, {8 * time.Second, true, 3 * time.Second, 4 * time.Second},
			{10 * time.Second, false, 5 * time.Second, 5 * time.Second}, {20 * time.Second, false, 5 * time.Second, 5 * time.Second},
			{30 * time.Second, true, 5 * time.Second, 6 * time.Second}, {31 * time.Second, false, 6 * time.Second, 6 * time.Second},
		} {
			now := began.Add(step.at)
			s.Turn(step.on, now)
			sum, runs := s.Read(now)
			if after, _ := s.Read(now.Add(time.Second)); sum != step.sum || runs != step.on || after != step.after {
				t.Errorf("at %s it reads %s, runs %t, and a second later %s", step.at, sum, runs, after)
			}
		}
	})
}
