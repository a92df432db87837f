//go:build !race

package sweep

// seeds is how many seeds the laws are tested with. The race detector, which has
// little to find here, makes them several times as slow: make test runs the
// long row without it.
const seeds = 3000
