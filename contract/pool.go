package contract

// Pooled is an optional ability of a store whose transactions take connections from a pool:
// to say how many there are at most, so that what has a bound of its own keeps below it.
type Pooled interface {
	// MostConnections is the size of the pool; 0 without a limit.
	MostConnections() int
}
