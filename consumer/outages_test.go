package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// linesWith returns the lines of a log that contain text.
func linesWith(log, text string) []string {
	var found []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return found
}

func TestAnOutageIsOneLineThenOneAMinute(t *testing.T) {
	bubble(t, "five_minutes_without_a_store_are_six_lines_with_how_long_and_how_many_tries", func(t *testing.T) {
		var log log
		st, began := watch(memstore.New()), time.Now()
		st.onBegin = func(context.Context, []store.Mark) error {
			if time.Since(began) < 5*time.Minute+30*time.Second {
				return fmt.Errorf("connect: %w", errTest)
			}
			return nil
		}
		c := config(watchSource(numbered("m", 3)...))
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		runs(t, st, add, c)
		first, still := linesWith(log.String(), "store does not work"), linesWith(log.String(), "store still does not work")
		if len(first) != 1 || len(still) != 5 {
			t.Fatalf("%d lines of the outage and %d of its minutes, want 1 and 5:\n%s", len(first), len(still), log.String())
		}
		for i, line := range still {
			if !strings.Contains(line, fmt.Sprintf(" for=%dm", i+1)) || !strings.Contains(line, "tries=") || !strings.Contains(line, "error=") {
				t.Errorf("minute %d: %s", i+1, line)
			}
		}
		if back := linesWith(log.String(), "store works again"); len(back) != 1 || !strings.Contains(back[0], " after=5m") || !strings.Contains(back[0], "tries=") {
			t.Errorf("the end of the outage: %q", back)
		}
	})
	bubble(t, "one_that_waiting_cannot_mend_is_an_error_at_once_and_once_a_minute", func(t *testing.T) {
		var log log
		src, began := watchSource(numbered("m", 3)...), time.Now()
		src.onFetch = func(context.Context, source.Bound) error {
			switch since := time.Since(began); {
			case since < 10*time.Second:
				return fmt.Errorf("dial: %w", errTest)
			case since < 2*time.Minute+30*time.Second:
				return fmt.Errorf("fetch: %w", &semel.HandlerError{Decision: semel.DecidePermanent, Err: errors.New("no such topic")})
			}
			return nil
		}
		c := config(src)
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		runs(t, memstore.New(), add, c)
		warned, failed := linesWith(log.String(), "level=WARN msg=\"source does not work"), linesWith(log.String(), "level=ERROR msg=\"source")
		if len(warned) != 1 || len(failed) != 3 || !strings.Contains(failed[0], "for another cause") || !strings.Contains(failed[2], "still does not work") || !strings.Contains(failed[2], "error=\"fetch: no such topic\"") {
			t.Errorf("want a warning, and three errors of which the last says that it lasts:\n%s", log.String())
		}
	})
	bubble(t, "a_cause_that_changes_is_told_at_once_and_each_only_once", func(t *testing.T) {
		var log log
		st, began := watch(memstore.New()), time.Now()
		st.onBegin = func(context.Context, []store.Mark) error {
			switch since := time.Since(began); {
			case since < 5*time.Second:
				return fmt.Errorf("connect to port %d: shutting down (SQLSTATE 57P01)", 40000+since.Milliseconds())
			case since < 40*time.Second:
				return fmt.Errorf("after %v: read only (SQLSTATE 25006)", since)
			}
			return nil
		}
		c := config(watchSource(numbered("m", 3)...))
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		runs(t, st, add, c)
		lines := linesWith(log.String(), "does not work")
		if len(lines) != 2 || !strings.Contains(lines[0], "57P01") || !strings.Contains(lines[1], "does not work for another cause") || !strings.Contains(lines[1], "25006") {
			t.Errorf("the log is:\n%s", log.String())
		}
	})
	bubble(t, "causes_that_all_differ_do_not_flood_the_log", func(t *testing.T) {
		var log log
		st, began, tries := watch(memstore.New()), time.Now(), 0
		st.onBegin = func(context.Context, []store.Mark) error {
			if time.Since(began) > 10*time.Minute {
				return nil
			}
			tries++
			return errors.New("cause " + strings.Repeat("x", tries))
		}
		c := config(watchSource(numbered("m", 3)...))
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		runs(t, st, add, c)
		if n := len(linesWith(log.String(), "for another cause")); tries < 150 || n < 20 || n > 110 {
			t.Errorf("%d lines of %d causes in ten minutes", n, tries)
		}
	})
	bubble(t, "a_store_that_comes_and_goes_does_not_flood_the_log", func(t *testing.T) {
		var log log
		st, asked := watch(memstore.New()), 0
		st.onBegin = func(context.Context, []store.Mark) error {
			if asked++; asked%2 == 1 {
				return errTest
			}
			return nil
		}
		c := config(watchSource(numbered("m", 200)...))
		c.Logger, c.Batch.MaxSize = slog.New(slog.NewTextHandler(&log, nil)), 1
		runs(t, st, add, c)
		if n := len(linesWith(log.String(), "store ")); asked < 100 || n < 2 || n > 40 {
			t.Errorf("%d lines of %d failures", n, asked/2)
		}
	})
}

func TestALogLineIsShortAndSaysEachCauseOnce(t *testing.T) {
	bubble(t, "durations_are_rounded_and_joined_errors_are_one_line", func(t *testing.T) {
		var log log
		st, failed := watch(memstore.New()), false
		refused := errors.New("dial tcp 127.0.0.1:1: connection refused")
		st.onBegin = func(context.Context, []store.Mark) error {
			if failed {
				return nil
			}
			failed = true
			asked := fmt.Errorf("ask for topics: %w", refused)
			return errors.Join(asked, refused, fmt.Errorf("ask for groups: no such host"), asked)
		}
		c := config(watchSource(numbered("m", 3)...))
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		runs(t, st, add, c)
		lines := linesWith(log.String(), "store does not work")
		if len(lines) != 1 {
			t.Fatalf("the log is:\n%s", log.String())
		}
		if want := `error="ask for topics: dial tcp 127.0.0.1:1: connection refused; ask for groups: no such host"`; !strings.Contains(lines[0], want) {
			t.Errorf("%s is not in %s", want, lines[0])
		}
		for _, field := range strings.Fields(lines[0]) {
			if wait, found := strings.CutPrefix(field, "wait="); found && len(wait) > len("100ms") {
				t.Errorf("the wait is %s, with too many digits", wait)
			}
		}
	})
}
