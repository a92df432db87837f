package loglimit

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pass waits for a duration of virtual time.
func pass(t *testing.T, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

func bubble(t *testing.T, name string, f func(t *testing.T, log *slog.Logger, said *bytes.Buffer)) {
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			said := &bytes.Buffer{}
			f(t, slog.New(New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug}))), said)
		})
	})
}

func TestLinesOfOneNameAreBounded(t *testing.T) {
	bubble(t, "K4_the_rest_is_counted_in_the_next_line", func(t *testing.T, log *slog.Logger, said *bytes.Buffer) {
		for range 100 {
			log.Warn("claim lost", "id", 1)
		}
		if n := strings.Count(said.String(), "claim lost"); n != Most || strings.Count(said.String(), "suppressed_for=1m") != 1 || strings.Contains(said.String(), "suppressed=") {
			t.Errorf("%d lines:\n%s", n, said)
		}
		said.Reset()
		pass(t, Window)
		log.Warn("claim lost", "id", 1)
		log.Warn("claim lost", "id", 1)
		if lines := strings.Split(strings.TrimSpace(said.String()), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "suppressed=70") || strings.Contains(lines[1], "suppressed=") {
			t.Errorf("the next lines:\n%s", said)
		}
	})
	bubble(t, "K4_the_first_of_each_reason_are_logged", func(t *testing.T, log *slog.Logger, said *bytes.Buffer) {
		for i := range 100 {
			log.Warn("parked", "reason", "gap", "id", i)
		}
		for range 3 {
			log.Warn("parked", "reason", "malformed")
		}
		if gaps, others := strings.Count(said.String(), "reason=gap"), strings.Count(said.String(), "reason=malformed"); gaps != MostOfReason || others != 3 || !strings.Contains(said.String(), "suppressed=90") {
			t.Errorf("%d and %d:\n%s", gaps, others, said)
		}
	})
	bubble(t, "K4_reasons_without_end_do_not_lift_the_bound_of_the_name", func(t *testing.T, log *slog.Logger, said *bytes.Buffer) {
		for i := range 1000 {
			log.Warn("parked", "reason", fmt.Sprint(i))
		}
		if n := strings.Count(said.String(), "parked"); n != Most {
			t.Errorf("%d lines", n)
		}
	})
	bubble(t, "K4_names_without_end_take_memory_with_an_end", func(t *testing.T, log *slog.Logger, said *bytes.Buffer) {
		for i := range 10_000 {
			log.Warn(fmt.Sprint("line ", i))
		}
		h := log.Handler().(*Handler)
		if lines, names := strings.Count(said.String(), "\n"), len(h.gates.byName); lines != mostNames+Most || names != mostNames+1 {
			t.Errorf("%d lines, %d names", lines, names)
		}
		pass(t, Window)
		log.Warn("another")
		if names := len(h.gates.byName); names > 2 {
			t.Errorf("%d names are kept", names)
		}
	})
	bubble(t, "K4_all_who_log_there_share_the_bound", func(t *testing.T, log *slog.Logger, said *bytes.Buffer) {
		again := slog.New(New(log.With("consumer", "b").Handler()))
		for range Most {
			log.Warn("claim lost")
			again.Warn("claim lost")
		}
		if n := strings.Count(said.String(), "claim lost"); n != Most {
			t.Errorf("%d lines", n)
		}
	})
	bubble(t, "K4_who_asks_for_debug_gets_all", func(t *testing.T, log *slog.Logger, said *bytes.Buffer) {
		for range 100 {
			log.Debug("duplicate")
		}
		if n := strings.Count(said.String(), "duplicate"); n != 100 {
			t.Errorf("%d lines", n)
		}
	})
	bubble(t, "K4_a_reason_has_its_lines_again_in_the_next_minute", func(t *testing.T, log *slog.Logger, said *bytes.Buffer) {
		for range 3 {
			for range MostOfReason + 5 {
				log.Warn("parked", "reason", "gap")
			}
			if n := strings.Count(said.String(), "reason=gap"); n != MostOfReason {
				t.Errorf("%d lines:\n%s", n, said)
			}
			said.Reset()
			pass(t, Window)
		}
	})
	bubble(t, "K4_what_was_left_out_of_a_name_is_told_however_many_others_came", func(t *testing.T, log *slog.Logger, said *bytes.Buffer) {
		for range Most + 12 {
			log.Warn("claim lost")
		}
		for i := range mostNames - 1 {
			log.Warn(fmt.Sprint("line ", i))
		}
		pass(t, Window)
		log.Warn("another")
		said.Reset()
		if log.Warn("claim lost"); !strings.Contains(said.String(), "suppressed=12") {
			t.Errorf("the next line:\n%s", said)
		}
	})
	bubble(t, "K4_lines_of_each_level_but_debug_are_bounded", func(t *testing.T, log *slog.Logger, said *bytes.Buffer) {
		for range 100 {
			log.Info("discarded")
			log.Error("handler sticks")
		}
		if info, faults := strings.Count(said.String(), "discarded"), strings.Count(said.String(), "handler sticks"); info != Most || faults != Most {
			t.Errorf("%d and %d lines", info, faults)
		}
	})
	bubble(t, "K4_a_line_that_goes_to_two_logs_is_changed_in_neither_by_the_other", func(t *testing.T, _ *slog.Logger, _ *bytes.Buffer) {
		var logs [2]bytes.Buffer
		both := [2]slog.Handler{New(slog.NewTextHandler(&logs[0], nil)), New(slog.NewTextHandler(&logs[1], nil))}
		for range Most {
			r := slog.NewRecord(time.Now(), slog.LevelWarn, "claim lost", 0)
			r.AddAttrs(slog.Int("a", 1), slog.Int("b", 2), slog.Int("c", 3), slog.Int("d", 4), slog.Int("e", 5)) // the number that a record stores inline
			r.AddAttrs(slog.Int("f", 6))
			r.AddAttrs(slog.Int("g", 7))
			r.AddAttrs(slog.Int("h", 8))
			for _, h := range both {
				if err := h.Handle(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
		}
		if a, b := logs[0].String(), logs[1].String(); a != b || strings.Contains(a, "BUG") || strings.Count(a, "suppressed_for=1m") != 1 {
			t.Errorf("one says\n%s\nthe other\n%s", a, b)
		}
	})
}
