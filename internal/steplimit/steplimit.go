// Package steplimit contains the limits of the steps that a row stores.
package steplimit

// The maximum number of steps of a consumer, and the maximum lengths in bytes of a step's name and output.
const (
	Steps  = 32
	Name   = 64
	Output = 64 << 10
)
