// Package model is the simulator's own model of a store and of a source: markers, inbox rows, claims, streams,
// lines and lanes in maps and slices, without goroutines and without locks that block. A line has the messages
// that are processed in order; a lane is a partition of the source. The package shares no code with package
// memstore, so it is unlikely that both have the same mistake. If a rule of the product is shared code
// (internal/calls, internal/admin, internal/sqlform), the model uses that code, so that the simulator tests
// it.
//
// Some fields are "for the checker". A real store does not have them: the simulator counts there what the
// store forgets.
package model
