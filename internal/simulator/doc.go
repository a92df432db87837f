// Package simulator proves the machine. It puts one or two real machines into a
// world that it makes up: a source with lanes, a store with transactions that
// they share, handlers that misbehave, and a clock of its own. A seed decides
// everything that could happen in more than one way, so that a seed always gives
// the same history, byte for byte.
//
// A run has two phases. In the first, faults happen: crashes at every point,
// lost replies, lanes that come and go, a store that is slow or dead, a process
// that is frozen and hears of everything late. In the second the world is calm
// and the machines, started again if they have to be, must bring every delivery
// to its end. In some seeds persons replay beside all that: a process of its own
// reads the history again, operators let run what was set aside, and a rebuild
// fills a generation of its own that the live processes are switched to. In others persons act
// on several rows of one identity, or the store's clock is hours ahead or behind for a while.
//
// A checker watches each step and holds it against the laws of
// docs/numbers.md; what breaks one names it.
//
// Every decision is a number drawn from choices, and zero is always the
// harmless one. A history that breaks a law is made short by taking numbers
// out of its list, or by making them zero, as long as the law stays broken.
package simulator
