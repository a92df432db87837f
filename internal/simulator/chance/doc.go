// Package chance provides the random decisions of a simulated run and the agenda of its future events.
package chance
