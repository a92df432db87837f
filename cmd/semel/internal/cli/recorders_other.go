//go:build !unix

package cli

// onSignal does nothing: this system has no signal for it, and semel record is there.
func (r *recorders) onSignal() (stop func()) { return func() {} }
