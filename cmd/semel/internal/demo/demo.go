// Package demo shows the effect of crashes on payments. Three consumers process the same deliveries: two
// consumers as people usually write them, and one with Semel. The processes of all three consumers are killed
// at the same deliveries and steps. Each consumer has its own process and database. The broker runs in the
// parent process.
package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Options configure a demo.
type Options struct {
	// Seed determines the deliveries and the crashes. Two demos with the same seed are equal.
	Seed uint64
	// Folder is the folder for the databases. Folder must not contain databases of an earlier demo.
	Folder string
	// Process returns the command that starts a consumer's process. The process must call Consume with its
	// standard input and output.
	Process func(ctx context.Context, name, path string) *exec.Cmd
	// Terminal shows the progress; nil to show none.
	Terminal io.Writer
}

// limit is the timeout of a demo. A demo normally takes seconds.
const limit = 2 * time.Minute

// Run runs the consumers in parallel and reads the report from their databases. An error of Run means that
// the demo did not complete. Run does not check the results in the report; Report.Check does.
func Run(ctx context.Context, o Options) (Report, error) {
	ctx, stop := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the demonstration did not end in %v", limit))
	defer stop()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	p := newPlan(o.Seed)
	report := Report{Seed: o.Seed, Payments: payments, Copies: len(p.deliveries) - payments, Crashes: p.crashes, Consumers: make([]Figures, len(Names()))}
	watch := newWatch(o.Terminal, len(p.deliveries))
	var all sync.WaitGroup
	for i, name := range Names() {
		show := watch.add(name)
		all.Go(func() {
			f, err := runConsumer(ctx, o, p, name, show)
			if err != nil {
				fail(fmt.Errorf("consumer %s: %w", name, err))
			}
			report.Consumers[i] = f
		})
	}
	all.Wait()
	watch.close()
	return report, context.Cause(ctx)
}

// runConsumer runs a consumer until all messages are acked. After each crash, the function starts the
// consumer's process again.
func runConsumer(ctx context.Context, o Options, p plan, name string, show func(*broker)) (Figures, error) {
	path := filepath.Join(o.Folder, name+".db")
	if _, err := os.Stat(path); err == nil {
		return Figures{}, fmt.Errorf("%s exists already; use another folder", path)
	}
	if err := create(ctx, path); err != nil {
		return Figures{}, err
	}
	b, err := newBroker(p)
	if err != nil {
		return Figures{}, err
	}
	for ended := false; !ended; {
		if ended, err = serve(ctx, b, o.Process(ctx, name, path), func() { show(b) }); err != nil {
			return Figures{}, err
		}
	}
	f, err := audit(ctx, path, p.deliveries)
	f.Name, f.Crashes = name, b.crashCount
	f.Deliveries, f.Redeliveries = b.countDeliveries()
	return f, err
}
