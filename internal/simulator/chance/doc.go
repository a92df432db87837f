// Package chance holds what orders a simulated run: the decisions of its seed, and the agenda of
// what will happen when.
package chance
