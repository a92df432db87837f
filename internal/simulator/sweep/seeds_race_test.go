//go:build race

package sweep

// seeds is how many seeds the laws are tested with under the race detector.
const seeds = 300
