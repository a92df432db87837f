package machine

import (
	"testing"
	"time"
)

func TestAWaitForACopyElsewhere(t *testing.T) {
	t.Run("case_5_a_wait_for_a_copy_elsewhere_is_told_after_a_second_and_then_once_a_minute", func(t *testing.T) {
		w := newWorld(t, testConfig())
		w.input = [][]*Item{items(20, "a")}
		w.busy = func(f *Flight) bool {
			for _, en := range f.Entries {
				if en.Item.Identity == "a7" && w.now < 10*time.Minute {
					return true
				}
			}
			return false
		}
		w.run(100000)
		var told []Time
		for _, r := range w.reports {
			if r.Kind == ReportBusy {
				told = append(told, r.Wait)
				if r.Item.Identity != "a7" {
					t.Errorf("%s is named", r.Item.Identity)
				}
			}
		}
		if len(told) < 8 || len(told) > 11 || told[0] < time.Second || told[0] > 12*time.Second {
			t.Errorf("told after %v", told)
		}
		if got := w.m.Counts(); got.Applied != 20 || got.Retried != 0 {
			t.Errorf("%+v", got)
		}
	})
}
