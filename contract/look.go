package contract

import "context"

// MarkerLookup is an optional ability of a TxStore: to say without a transaction of the caller's
// what became of identities, in one round trip.
type MarkerLookup interface {
	// LookUpMarkers answers marks that ask whether their messages may run, one by one, by what is
	// committed: Seen, Conflict or Newer where a marker is there, as Begin would. Fresh says
	// that none was to be seen, which decides nothing: one may be on its way, and only the
	// mark that Begin writes can tell. Of a mark only scope, id and fingerprint are looked
	// at. Nothing is written and nobody is waited for. It may be called from several
	// goroutines.
	LookUpMarkers(ctx context.Context, marks []Mark) ([]Verdict, error)
}
