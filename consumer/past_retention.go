package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/store"
)

// lookBack finds out whether markers of the consumer were removed once, under another policy
// than this one, which keeps all: copies of those may still come. Where it cannot be known
// each message is asked for its age, which the store judges.
// An error that wraps semel.ErrState: the store looks for the markers where they are not.
func (c *Consumer[Tx]) lookBack(ctx context.Context) error {
	reaper, able := c.store.(store.Reaper)
	if !able {
		return nil
	}
	removed, err := reaper.Removed(ctx, c.config.Name)
	switch {
	case errors.Is(err, semel.ErrState):
		return fmt.Errorf("semel: consumer %q cannot start: %w", c.config.Name, err)
	case err != nil:
		c.config.reaped.Store(true)
	case c.config.Retention.Keep == 0:
		c.config.noteRemoved(removed)
	}
	return nil
}

// noteRemoved has each message asked for its age from now on, if something was removed.
func (c *settings) noteRemoved(before time.Time) {
	if !before.IsZero() && !c.reaped.Swap(true) {
		c.Logger.Info("markers of this consumer were removed under another policy: what is older is not taken for new", "consumer", c.Name, "before", before)
	}
}

// judgesAge reports whether a message that is not known is asked for its age.
func (c *settings) judgesAge() bool { return c.Retention.Keep != 0 || c.reaped.Load() }
