package consumer

import "github.com/semel-go/semel"

// checkReplay reports what is wrong with the replay that the consumer is to carry out.
func (c *Config) checkReplay(fault faultFunc) {
	switch r := c.Replay; {
	case r == nil:
	case r.ID < 1:
		fault("Replay.ID", "is %d; it is the replay's number in the store, 1 or more", r.ID)
	case r.Generation != 0:
		fault("Replay.Generation", "is %d; 0, the live one, is the only one that can be replayed into", r.Generation)
	case c.Duplicates != DuplicatesSkip:
		fault("Duplicates", "is %v, and in a replay most messages are duplicates, whose intents would all be sent again; set DuplicatesSkip", c.Duplicates)
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
