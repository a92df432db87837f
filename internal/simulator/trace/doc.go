// Package trace names the events of a simulated run, for its history and for the coverage of many runs.
package trace
