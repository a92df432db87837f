// Package machine makes the engine's decisions: step(event, now) → actions. It
// starts no goroutine, reads no clock, holds no lock and does no I/O, so that
// a simulator can order events from a seed.
package machine

// state is the machine's own part of an Item.
type state struct{}

// flightState is the machine's own part of a Flight.
type flightState struct{}

// Machine decides for one consumer. It is used by one goroutine.
type Machine struct{ config Config }

// New returns a machine that has fetched nothing yet; the first Step, of any
// event, starts it.
func New(c Config) *Machine { return &Machine{config: c} }

// Step takes what happened and returns what to do, in order. The slice is
// valid until the next Step. Time never goes back.
func (m *Machine) Step(e Event, now Time) []Action { return nil }

// Counts returns what became of deliveries so far.
func (m *Machine) Counts() Counts { return Counts{} }
