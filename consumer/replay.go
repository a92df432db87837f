package consumer

import "github.com/semel-go/semel"

// checkReplay reports what is wrong with the replay that the consumer is to carry out.
func (c *Config) checkReplay(fault faultFunc) {
	switch r := c.Replay; {
	case r == nil:
	case r.ID < 1:
		fault("Replay.ID", "is %d; it is the replay's number in the store, 1 or more", r.ID)
	case r.Generation != c.generation():
		fault("Replay.Generation", "is %d, and the consumer works in generation %d; give both the same", r.Generation, c.generation())
	case c.ReEmitIntents:
		fault("ReEmitIntents", "is set, and in a replay most messages are duplicates, whose intents would all be sent again; remove it")
	}
}

// quiet reports whether a message is part of a replay without effects.
func quiet(m *semel.Message) bool {
	if m == nil {
		return false
	}
	r, is := m.Replay()
	return is && !r.Effects
}
