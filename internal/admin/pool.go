package admin

// Pooled is implemented by a store with a connection pool. Other limits, such as the number of
// concurrent HTTP requests, are kept below its size.
type Pooled interface {
	// MostConnections returns the size of the pool; 0 means no limit.
	MostConnections() int
}
