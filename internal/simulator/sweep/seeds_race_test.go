//go:build race

package sweep

// seeds is the number of simulated runs under the race detector.
const seeds = 300
