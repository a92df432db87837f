//go:build unix

package runs

import (
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// onSignal writes recordings on each SIGUSR1 until the caller calls stop.
func (r *recorders) onSignal() (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	var watch sync.WaitGroup
	watch.Go(func() {
		for range signals {
			r.writeOnSignal()
		}
	})
	return func() {
		signal.Stop(signals)
		close(signals)
		watch.Wait()
	}
}
