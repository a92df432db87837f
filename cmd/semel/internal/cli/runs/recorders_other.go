//go:build !unix

package runs

// onSignal does nothing, because this system has no signal for recordings; use semel consumers
// record.
func (r *recorders) onSignal() (stop func()) { return func() {} }
