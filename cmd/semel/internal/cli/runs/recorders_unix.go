//go:build unix

package runs

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// onSignal writes recordings at each SIGUSR1, until the returned function is called.
func (r *recorders) onSignal() (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	var watch sync.WaitGroup
	watch.Go(func() {
		for range signals {
			r.signalled()
		}
	})
	return func() {
		signal.Stop(signals)
		close(signals)
		watch.Wait()
	}
}
