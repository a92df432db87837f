package cli

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP
// ends, so that a command can finish what it does. A second SIGINT or SIGTERM
// ends the process at once; a second SIGHUP does not, because of one terminal
// that goes away both the kernel and the shell tell. Who started the process
// with SIGHUP ignored, as nohup does, wants it to go on.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 3)
	wanted := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		wanted = append(wanted, syscall.SIGHUP)
	}
	signal.Notify(signals, wanted...)
	var watch sync.WaitGroup
	watch.Go(func() {
		for s := range signals {
			if ctx.Err() != nil && s != syscall.SIGHUP {
				os.Exit(exitInterrupted)
			}
			cancel()
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		watch.Wait()
		cancel()
	}
}
