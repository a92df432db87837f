package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/internal/worker"
	"github.com/spf13/cobra"
)

func topCommand(c *command.CLI) *cobra.Command {
	var store string
	var every time.Duration
	var once bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch all consumers",
		Long: `Show every consumer of a policy or of a store, and refresh until q is pressed.
Left and right change the sort order, up and down scroll. Without a terminal,
with --once or with -o json, print one table and exit.

Waiting and parked messages and their ages come from the store. Effects a
second, lag and readiness come from the run at the address of the policy key
listen. WHY is the reason why a consumer is not ready or is paused, or its last
error.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 100*time.Millisecond {
				return command.UsageError("--every %v: give 100ms or more", every)
			}
			p, store, err := c.LoadFor(store)
			if err != nil {
				return err
			}
			a, err := c.Open(p, store, false) // a store that is down must not hide the other stores
			if err != nil {
				return err
			}
			defer closeWithTimeout(a)
			w := &watcher{CLI: c, policy: p, stores: storesOf(a), now: time.Now, call: call}
			if once || c.JSON || !c.OutTerminal || !keyboard(c.In) {
				return w.printOnce(cmd.Context())
			}
			return w.showLive(cmd.Context(), every) // keys are needed, because q ends the command
		},
	}
	cmd.Flags().DurationVar(&every, "every", 2*time.Second, "refresh interval")
	cmd.Flags().BoolVar(&once, "once", false, "print one table and exit")
	return withControlStore(c, cmd, &store)
}

func storesOf(a *assembly.Assembly) []topStore {
	var all []topStore
	for _, s := range a.Stores {
		all = append(all, checkedStore{s, a})
	}
	return all
}

// checkedStore is a store that can explain why it is not readable.
type checkedStore struct {
	*assembly.Store
	assembly *assembly.Assembly
}

// Unfit returns why the store is not readable and a remedy, or nil if the cause is unknown. After a timeout,
// Unfit does not query the store again.
func (s checkedStore) Unfit(ctx context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return s.Failed(err)
	}
	return s.assembly.CheckStore(ctx, s.Store)
}

// leaveWithin is the maximum time for closing stores that the command only read.
const leaveWithin = 200 * time.Millisecond

// closeWithTimeout closes stores that the command only read, and waits at most leaveWithin. A user who quits must not
// wait for a store that does not respond. The connections of a store that does not respond close when the
// process ends.
func closeWithTimeout(a io.Closer) {
	var closing worker.Group
	closing.Go(func() { _ = a.Close() }) // the error does not matter, because nothing was written
	closing.WaitFor(leaveWithin)
}

// watcher is the state of `semel top`, which shows the consumers at intervals.
type watcher struct {
	*command.CLI
	policy   *policy.Policy
	stores   []topStore
	now      func() time.Time
	call     caller
	previous effectSample // the state of the consumers that was read before
}

// errNoStore is the error of `semel top --once` if no store was readable.
var errNoStore = errors.New("no store could be read")

// printOnce prints the state of the consumers once.
func (w *watcher) printOnce(ctx context.Context) error {
	l := w.look(ctx)
	var err error
	if w.JSON {
		err = w.WriteJSON(l)
	} else {
		columns := unlimitedUnless(w.OutTerminal, w.Width)
		for _, line := range l.frame(columns, sortState{}) {
			if _, err = fmt.Fprintln(w.Out, line); err != nil {
				break
			}
		}
	}
	if err == nil && l.Failed == len(w.stores) && l.Failed > 0 {
		err = errNoStore
	}
	return command.Failed(err)
}

// showLive shows the consumers at intervals until the user presses q or ctx ends.
func (w *watcher) showLive(ctx context.Context, every time.Duration) error {
	screen, err := openScreen(w.Raw)
	if err != nil {
		return command.Failed(err)
	}
	defer screen.close()
	return w.show(ctx, screen, every)
}

// show shows the consumers on a screen. The screen reacts to keys immediately, even while a store or the
// process does not respond.
func (w *watcher) show(ctx context.Context, screen *screen, every time.Duration) error {
	l := &topLook{At: w.now(), Notes: []string{"the stores and the run are asked …"}, Asking: true}
	ctx, cancel := context.WithCancel(ctx)
	looks := make(chan *topLook)
	var looking worker.Group
	looking.Go(func() { w.readRepeatedly(ctx, every, looks) })
	defer looking.Wait()
	defer cancel()
	var s sortState
	for {
		columns, rows := screen.size(w.Width)
		if err := screen.draw(append(l.frame(columns, s), fit(keysLine, columns)), rows, s.top); err != nil {
			return command.Failed(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case l = <-looks:
		case key, open := <-screen.keys:
			if !open || s.press(key, len(l.Consumers)) {
				return nil
			}
		}
	}
}

// readRepeatedly reads the state of the consumers at intervals until ctx ends.
func (w *watcher) readRepeatedly(ctx context.Context, every time.Duration, to chan<- *topLook) {
	for {
		select {
		case to <- w.look(ctx):
		case <-ctx.Done():
			return
		}
		if !timing.Wait(ctx, every) {
			return
		}
	}
}

// sortState has the sort order and the scroll position that the user selected with keys.
type sortState struct {
	orderIndex int // index in sortOrders
	top        int // index of the first visible consumer
}

// The names of keys.
const (
	keyUp    = "up"
	keyDown  = "down"
	keyLeft  = "left"
	keyRight = "right"
	keyQuit  = "quit"
)

// press handles a key. press returns true for the key that ends `semel top`.
func (s *sortState) press(key string, consumers int) (ends bool) {
	switch key {
	case keyQuit:
		return true
	case keyUp:
		s.top = max(s.top-1, 0)
	case keyDown:
		s.top = max(min(s.top+1, consumers-1), 0)
	case keyLeft:
		s.orderIndex = (s.orderIndex + len(sortOrders) - 1) % len(sortOrders)
	case keyRight:
		s.orderIndex = (s.orderIndex + 1) % len(sortOrders)
	}
	return false
}

// readKeys reads keys from a terminal in raw mode until the terminal is closed.
func readKeys(in io.Reader, keys chan<- string) {
	defer close(keys)
	b := make([]byte, 16)
	for {
		n, err := in.Read(b)
		if err != nil {
			return
		}
		switch string(b[:n]) {
		case "q", "Q", "\x03", "\x04":
			keys <- keyQuit
			return
		case "\x1b[A", "\x1bOA", "k":
			keys <- keyUp
		case "\x1b[B", "\x1bOB", "j":
			keys <- keyDown
		case "\x1b[C", "\x1bOC":
			keys <- keyRight
		case "\x1b[D", "\x1bOD":
			keys <- keyLeft
		}
	}
}
