package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/intents"
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

// emit has what these messages caused sent again, and what came of their former identities.
func (e *engine[Tx]) emit(ctx context.Context, of []resultOf) error {
	emitter, can := e.store.(admin.Emitter)
	if !can {
		return fmt.Errorf("semel: consumer %q: its store cannot have intents sent again: %w", e.config.Name, semel.ErrUnsupported)
	}
	o := admin.EmitOptions{Every: admin.EmitInterval, Windows: map[string]time.Duration{}}
	for sender, window := range e.config.SenderWindows {
		switch window {
		case WindowAlways:
		case WindowNever:
			o.Windows[sender] = 1
		default:
			o.Windows[sender] = window
		}
	}
	known := map[semel.Key]bool{}
	add := func(source, id string) {
		if key := (semel.Key{Consumer: e.config.Name, Source: source, ID: id}); !known[key] {
			known[key] = true
			o.Causes = append(o.Causes, intents.Cause(key))
		}
	}
	for i := range of {
		add(of[i].source, of[i].id)
		if f := of[i].former; f != nil {
			add(f.Source, f.ID)
		}
	}
	did, err := emitter.Emit(ctx, o)
	e.reporter.ReEmitted(did.Again, did.Forgotten)
	return err
}
