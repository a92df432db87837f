//go:build race

package sweep

// seeds is the number of seeds in the tests of laws under the race detector.
const seeds = 300
