//go:build !unix

package runs

// onSignal does nothing on this system, which has no signal SIGUSR1. Users can run `semel consumers record`
// instead of sending the signal.
func (r *recorders) onSignal() (stop func()) { return func() {} }
