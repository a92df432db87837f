// Package steplimit contains the limits of the steps that a row stores.
package steplimit

// The limits: the number of steps of a consumer, and the bytes of a step's name and of its output.
const (
	Steps  = 32
	Name   = 64
	Output = 64 << 10
)
