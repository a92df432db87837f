//go:build !race

package sweep

// seeds is the number of simulated runs, each with its own random seed, in which the tests look for broken laws. The
// race detector makes the tests several times slower and finds little here, so more seeds run without it.
const seeds = 3000
