package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/engine"
	"github.com/semel-go/semel/internal/admin"
)

// checkDuplicates reports what is wrong with what becomes of duplicates.
func (c *Config) checkDuplicates(fault faultFunc) {
	switch {
	case !c.ReEmitIntents && len(c.SenderWindows) > 0:
		fault("SenderWindows", "says how old an intent may be that is sent again, and ReEmitIntents is not set; set it, or remove SenderWindows")
	case c.ReEmitIntents && !c.Strategy.marks():
		fault("ReEmitIntents", "is set, and with the Strategy %v no marker tells which messages are duplicates; remove it", c.Strategy)
	}
	for sender, window := range c.SenderWindows {
		if window <= 0 && window != WindowNever {
			fault("SenderWindows", "is %v of %q; it is a time, or WindowAlways, or WindowNever", window, sender)
		}
	}
}

// fitsReEmission reports what keeps intents from being sent again.
func (c *settings) fitsReEmission(store any) error {
	if !c.ReEmitIntents {
		return nil
	}
	if c.way == byClaim {
		return errors.New("ReEmitIntents is set, and with NewLeased a handler has no transaction in which it could write intents; remove it")
	}
	if _, can := store.(admin.Emitter); !can {
		return fmt.Errorf("ReEmitIntents is set, and the store keeps no intents that it could have sent again (admin.Emitter); remove it: %w", semel.ErrUnsupported)
	}
	return nil
}

// canEmit asks the store whether it can have intents sent again, where it has to.
func (c *Consumer[Tx]) canEmit(ctx context.Context) error {
	if !c.config.ReEmitIntents {
		return nil
	}
	emitter, _ := c.store.(admin.Emitter)
	if _, err := emitter.Emit(ctx, admin.EmitOptions{}); err != nil {
		return fmt.Errorf("semel: consumer %q: ReEmitIntents is set: %w", c.config.Name, err)
	}
	return nil
}

// fitsDuplicates reports what keeps duplicates from being told of.
func (c *settings) fitsDuplicates(st any) error {
	if c.OnDuplicate == nil {
		return nil
	}
	if !c.Strategy.marks() {
		return fmt.Errorf("OnDuplicate is set, and with the Strategy %v no marker tells which messages are duplicates; remove it", c.Strategy)
	}
	if _, reads := st.(engine.ResultReader); !reads {
		return fmt.Errorf("OnDuplicate is set, and the store keeps no results that it could be given: %w", semel.ErrUnsupported)
	}
	return nil
}
