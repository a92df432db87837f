package store

import "context"

// MarkerLookup is implemented by a TxStore that can read markers in one round trip, without a
// transaction of the caller.
type MarkerLookup interface {
	// LookUpMarkers returns one verdict for each mark, from committed markers: Seen, Conflict or
	// Newer if there is a marker, as Begin would return. Fresh means that no marker was
	// visible; it is not binding, because another transaction may be about to commit one, and
	// only Begin can decide. Only Scope, ID and Fingerprint of a mark are used. Nothing is
	// written and no lock is waited for. It is safe for concurrent use.
	LookUpMarkers(ctx context.Context, marks []Mark) ([]Verdict, error)
}
