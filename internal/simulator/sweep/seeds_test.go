//go:build !race

package sweep

// seeds is the number of seeds in the tests of laws. The race detector makes the tests several times slower
// and finds little here; `make test` also runs more seeds without it.
const seeds = 3000
