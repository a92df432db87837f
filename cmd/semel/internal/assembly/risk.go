package assembly

import (
	"log/slog"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
)

// logRisk logs at the start which risk the policy accepts: the calls of a consumer
// carry no key.
func (a *Assembly) logRisk(c *policy.Consumer) {
	because := func(text string) []any {
		return []any{slog.String("consumer", c.Name), slog.String("because", legible.Printable(text))}
	}
	switch h := c.Handler.HTTP; {
	case h.MayDouble != "":
		a.options.Logger.Warn("calls carry no key and may happen twice: after a crash or a lost answer they are made again", because(h.MayDouble)...)
	case h.MayBeLost != "":
		a.options.Logger.Warn("calls carry no key and may be lost: after a crash or a lost answer they are not made again, and their messages are discarded", because(h.MayBeLost)...)
	}
}

// logWindow logs at the start what becomes of a call with an unknown outcome, and how its
// message ends when it may not be made again.
func (a *Assembly) logWindow(c *policy.Consumer, ends string) {
	says := ""
	switch window := c.Handler.HTTP.Window; window {
	case consumer.WindowAlways:
		says = "it is made again under the same key, which the endpoint never forgets"
	case consumer.WindowNever:
		says = "none is made again, since the endpoint knows no keys: " + ends
	default:
		says = "it is made again under the same key for " + legible.Span(window-c.Timeout) + " from the first call; after that " + ends
	}
	a.options.Logger.Info("of a call whose outcome nobody knows: "+says, "consumer", c.Name)
}

// boxOf is the command that shows what waits for a consumer.
func boxOf(c *policy.Consumer) string {
	if c.Sends() {
		return "intents"
	}
	return "inbox"
}
