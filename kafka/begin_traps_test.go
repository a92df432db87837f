package kafka

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestWhereALaneBeginsIsKnownBeforeItIsRead(t *testing.T) {
	bubble(t, "trap_T95_a_run_that_begins_now_and_finds_nothing_new_ends_idle", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "history")
		p := w.start(count, now, whenIdle)
		if err := p.ends(t); err != nil {
			t.Error(err)
		}
		w.without("history")
	})
	bubble(t, "trap_T92_where_the_group_began_has_left_the_log_it_goes_on_at_its_beginning_and_says_so", func(t *testing.T) {
		w := newWorld(t, 1)
		w.publish(0, "history")
		p := w.start(count, now, nil)
		w.begun(1)
		w.publish(0, numbered("a", 1, 4)...)
		w.settles(time.Minute)
		_ = p.leave()
		w.forgetGroup()
		if err := w.cluster.DeleteRecords(theTopic, 0, 5); err != nil {
			t.Fatal(err)
		}
		w.publish(0, "new")
		text := &lockedBuffer{}
		log := slog.New(slog.NewTextHandler(text, nil))
		w.start(count, func(c *Config) { c.Start.Now, c.Logger = true, log }, func(c *settings) { c.Logger = log })
		w.settles(time.Minute)
		w.once("new")
		for _, part := range []string{"records have left the log", "from=1", "to=4"} {
			if !strings.Contains(text.String(), part) {
				t.Errorf("the log does not say %q:\n%.3000s", part, text.String())
			}
		}
	})
}
