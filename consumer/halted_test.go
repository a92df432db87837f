package consumer_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/memstore"
)

func TestTheErrorOfAHaltedConsumerCanBePrinted(t *testing.T) {
	bubble(t, "trap_T106_the_error_that_run_returns_is_one_line_that_rules_no_terminal", func(t *testing.T) {
		payload := "no account \x1b[2J\x1b]0;owned\x07\nINJECTED \u202e\u009b2J\xff"
		cause := errors.New(payload)
		c := config(newListSource(message("id \x1b[2J\n\u2066", `{}`)))
		c.Retry.OnExhausted = consumer.ActionHalt
		_, err := consume(t, memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { return semel.Permanent(cause) }, c)
		if !errors.Is(err, semel.ErrHalted) || !errors.Is(err, cause) {
			t.Fatalf("the run ended with %v", err)
		}
		for _, r := range err.Error() {
			if !strconv.IsPrint(r) {
				t.Errorf("%U is in %q", r, err)
			}
		}
		if !strings.Contains(err.Error(), `no account \x1b[2J\x1b]0;owned\a\nINJECTED \u202e\u009b2J\xff`) {
			t.Errorf("the error is %s", err)
		}
	})
}
