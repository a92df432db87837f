// Package model is the simulator's own model of a store and of a source: markers, inbox rows,
// claims, streams, lines and lanes in maps and slices, without goroutines and without locks that
// block. The package shares no code with package memstore, so that a wrong rule in a store and
// the same mistake here are unlikely; what the product decides by a shared rule (internal/calls,
// internal/admin, internal/sqlform), the model asks of that rule, so that the rule is proven.
//
// Fields that a comment calls the checker's are no part of a store: the simulator counts in them
// what a store forgets.
package model
