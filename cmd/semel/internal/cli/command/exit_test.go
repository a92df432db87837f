package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semel-go/semel"
)

func TestWhatACancellationStandsBeside(t *testing.T) {
	stopped := fmt.Errorf("reading: %w", context.Canceled)
	lost := errors.New("the disk is full")
	for name, c := range map[string]struct {
		err  error
		says string
	}{
		"alone":                {stopped, "semel: interrupted\n"},
		"beside another error": {Failed(errors.Join(stopped, lost)), "semel: the disk is full\nsemel: interrupted\n"},
		"deep inside":          {errors.Join(fmt.Errorf("both: %w", errors.Join(lost, stopped)), stopped), "semel: the disk is full\nsemel: interrupted\n"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if code := Report(&out, c.err); code != ExitInterrupted || out.String() != c.says {
				t.Errorf("exit code %d: %s", code, &out)
			}
		})
	}
}

func TestAHaltIsNoInterruption(t *testing.T) {
	var out bytes.Buffer
	halted := Failed(fmt.Errorf("consumer billing halted by message \"7\": %w: %w", semel.ErrHalted, context.Canceled))
	if code := Report(&out, halted); code != ExitFailed || !strings.Contains(out.String(), `message "7"`) {
		t.Errorf("exit code %d: %s", code, &out)
	}
}

func TestWhatTheLibrarySaysInTheWordsOfAPolicy(t *testing.T) {
	for line, want := range map[string]string{
		`consumer billing: semel: consumer "billing" cannot start: Retention.Keep is 720h0m0s, and a copy can come 1080h0m0s late (x); keep markers for longer than that`:      `consumer "billing" cannot start: its retention is 30d, and a copy can come 45d late (x); keep markers for longer than that`,
		`a copy can come 24h1m5s late (x), and consumer "billing" keeps markers for 1h0m0s only; nothing is removed until its retention is longer`:                             `a copy can come 24h1m5s late (x), and consumer "billing" keeps markers for 1h only; nothing is removed until its retention is longer`,
		`consumer "billing" cannot start: Retention.Keep is 720h0m0s, and the source's broker can deliver a record again without an end (x); keep markers for ever, or let it`: `consumer "billing" cannot start: its retention is 30d, and the source's broker can deliver a record again without an end (x); keep markers for ever, or let it`,
		"a copy can come ... late": "a copy can come ... late",
	} {
		if got := message(line); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
