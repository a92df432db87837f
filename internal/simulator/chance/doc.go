// Package chance determines the course of a simulated run: the choices that its seed makes, and the agenda of
// future occurrences.
package chance
