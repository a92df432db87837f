// Package model is the simulator's own model of a store and of a source: markers, inbox rows, claims, streams, lines
// and lanes in maps and slices, without goroutines and without locks that block. A line is a queue of messages that are
// processed in order; a lane is a partition of the source. The package shares no code with package memstore, so it is
// unlikely that the two packages have the same mistake. If a rule of the product is shared code (internal/calls,
// internal/admin, internal/sqlform), the model uses that code, so that the simulator tests it.
//
// Some fields are "for the checker". A real store has no fields for the checker: the simulator uses such fields to
// count events that a real store does not record.
package model
