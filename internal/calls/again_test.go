package calls_test

import (
	"testing"
	"time"

	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/store"
)

func TestWhatIsSentAgain(t *testing.T) {
	done := calls.Sent{Sender: "mailer", State: store.StateCompleted, Started: 2, Finished: 2, Since: time.Hour, Ended: time.Minute}
	o := admin.EmitOptions{Every: time.Minute, Windows: map[string]time.Duration{"mailer": time.Hour + 1, "others": time.Second}}
	for name, is := range map[string]struct {
		change func(*calls.Sent)
		want   admin.Emitted
	}{
		"C12_an_output_that_ended_outside_of_a_transaction": {func(*calls.Sent) {}, admin.Emitted{Again: 1}},
		"C12_not_within_the_interval":                       {func(s *calls.Sent) { s.Ended-- }, admin.Emitted{Recent: 1}},
		"C12_E3_not_at_the_end_of_its_senders_window":       {func(s *calls.Sent) { s.Since++ }, admin.Emitted{Forgotten: 1}},
		"C12_independent_of_the_windows_of_others":          {func(s *calls.Sent) { s.Sender, s.Since = "third", 1<<62 }, admin.Emitted{Again: 1}},
		"C12_not_a_waiting_row":                             {func(s *calls.Sent) { s.State = store.StateReceived }, admin.Emitted{Left: 1}},
		"C12_not_a_row_of_a_newer_release":                  {func(s *calls.Sent) { s.State = "FUTURE" }, admin.Emitted{Left: 1}},
		"C12_law_1_not_a_row_without_a_call":                {func(s *calls.Sent) { s.Started, s.Finished = 0, 0 }, admin.Emitted{Left: 1}},
		"C12_law_1_not_a_row_that_a_transaction_ended":      {func(s *calls.Sent) { s.Finished = 1 }, admin.Emitted{Left: 1}},
		"C12_not_a_row_without_a_body":                      {func(s *calls.Sent) { s.BodyRemoved = true }, admin.Emitted{Left: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			s := done
			is.change(&s)
			if got := calls.EmitAgain(&o, &s); got != is.want {
				t.Errorf("%+v, want %+v", got, is.want)
			}
		})
	}
}
