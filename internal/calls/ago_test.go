package calls_test

import (
	"testing"
	"time"

	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/store"
)

func TestAgeOfTheFirstCall(t *testing.T) {
	begun := time.Unix(1_000_000_000, 0)
	rule := calls.Rule{Window: 24 * time.Hour}
	for name, is := range map[string]struct {
		at        []time.Time
		forgotten bool
	}{
		"E3_as_the_clock_says":                                       {[]time.Time{begun.Add(11 * time.Hour)}, false},
		"E3_two_clocks_that_differ_a_little":                         {[]time.Time{begun.Add(10*time.Hour - timing.ClockSlack)}, false},
		"E3_trap_T113_a_clock_that_was_set_back_cannot_tell_the_age": {[]time.Time{begun}, true},
		"E3_trap_T113_even_after_the_same_time_has_passed_again":     {[]time.Time{begun, begun.Add(11 * time.Hour)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var l calls.Ledger
			l.Start(store.Token(1), begun.Add(10*time.Hour)) // the store's clock is ahead
			var s store.CallStarted
			for _, at := range is.at {
				s = l.Start(store.Token(1), at)
			}
			if rule.Forgotten(s.Since+time.Hour) != is.forgotten {
				t.Errorf("%v ago, want it to be longer than %v: %v", s.Since, rule.Window, is.forgotten)
			}
		})
	}
}

func TestAgo(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	for name, is := range map[string]struct{ measured, want time.Duration }{
		"E3_the_measured_time":                              {time.Hour, time.Hour},
		"E3_zero_if_clocks_differ_a_little":                 {-timing.ClockSlack, 0},
		"E3_trap_T113_unmeasured_if_the_clock_was_set_back": {-timing.ClockSlack - 1, calls.Unmeasured},
		"E3_unmeasured_since_the_epoch":                     {century, calls.Unmeasured},
	} {
		t.Run(name, func(t *testing.T) {
			got := calls.Ago(is.measured)
			if got != is.want {
				t.Errorf("%v, want %v", got, is.want)
			}
			if text := calls.Text(got); (text == "before the store's clock was set back") != (got == calls.Unmeasured) {
				t.Errorf("its text is %q", text)
			}
		})
	}
}
