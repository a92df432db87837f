//go:build !race

package sweep

// seeds is the number of seeds for the laws' tests. With the race detector, which has little to find here, they
// take several times as long; make test runs the long sequence without it.
const seeds = 3000
