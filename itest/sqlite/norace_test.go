//go:build !race

package sqlite

// raced says that the race detector watches.
const raced = false
