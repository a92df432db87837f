//go:build !unix

package runs

// onSignal does nothing: this system has no signal for it, use semel consumers record.
func (r *recorders) onSignal() (stop func()) { return func() {} }
