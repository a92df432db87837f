// Package trace names what happens in a simulated world: for the lines of histories, and for the
// table of what a row of seeds has met.
package trace
