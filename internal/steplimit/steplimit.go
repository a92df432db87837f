// Package steplimit has the limits of the steps that a row stores.
package steplimit

// The limits: how many steps a consumer may have, and how many bytes the name and the output
// of one.
const (
	Steps  = 32
	Name   = 64
	Output = 64 << 10
)
