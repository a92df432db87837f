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

// pass lets time go by in a bubble.
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
		if n := strings.Count(said.String(), "claim lost"); n != Most || strings.Count(said.String(), "further=") != 1 || strings.Contains(said.String(), "unlogged") {
			t.Errorf("%d lines:\n%s", n, said)
		}
		said.Reset()
		pass(t, Window)
		log.Warn("claim lost", "id", 1)
		log.Warn("claim lost", "id", 1)
		if lines := strings.Split(strings.TrimSpace(said.String()), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "unlogged=70") || strings.Contains(lines[1], "unlogged") {
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
		if gaps, others := strings.Count(said.String(), "reason=gap"), strings.Count(said.String(), "reason=malformed"); gaps != MostOfReason || others != 3 || !strings.Contains(said.String(), "unlogged=90") {
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
		if lines, names := strings.Count(said.String(), "\n"), len(h.gates.of); lines != mostNames+Most || names != mostNames+1 {
			t.Errorf("%d lines, %d names", lines, names)
		}
		pass(t, Window)
		log.Warn("another")
		if names := len(h.gates.of); names > 2 {
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
}
