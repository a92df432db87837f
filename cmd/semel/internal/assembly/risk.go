package assembly

import (
	"log/slog"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/legible"
)

// tellRisk says at the start what the policy has taken upon itself: the calls of a consumer
// carry no key.
func (a *Assembly) tellRisk(c *policy.Consumer) {
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
