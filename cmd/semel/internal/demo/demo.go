// Package demo shows what a crash does to money: two consumers as people write
// them and one with Semel work through the same deliveries, and their processes
// are killed at the same deliveries and steps. Each consumer is a process of
// its own with a database of its own; the broker lives in the parent.
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

// Options are what a demonstration needs.
type Options struct {
	// Seed decides the deliveries and the crashes.
	Seed uint64
	// Folder is where the databases are made; they must not be there yet.
	Folder string
	// Process makes the command of a consumer's process, which calls Consume
	// with its standard input and output.
	Process func(ctx context.Context, name, path string) *exec.Cmd
	// Terminal, when not nil, shows the progress.
	Terminal io.Writer
}

// limit ends a demonstration that hangs; it takes seconds.
const limit = 2 * time.Minute

// Run runs the consumers side by side and reads the report from their
// databases. Its error says that the demonstration could not be held; whether
// it showed what it should says Report.Check.
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
			f, err := one(ctx, o, p, name, show)
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

// one runs a consumer, again after each crash, until everything is settled.
func one(ctx context.Context, o Options, p plan, name string, show func(*broker)) (Figures, error) {
	path := filepath.Join(o.Folder, name+".db")
	if _, err := os.Stat(path); err == nil {
		return Figures{}, fmt.Errorf("%s is there already; name another folder", path)
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
	f.Name, f.Crashes = name, b.crashed
	f.Deliveries, f.Redeliveries = b.delivered()
	return f, err
}
