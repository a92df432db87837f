//go:build race

package sweep

// seeds is the number of seeds for the laws' tests under the race detector.
const seeds = 300
