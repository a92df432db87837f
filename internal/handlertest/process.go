package handlertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/semel-go/semel/memstore"
)

// Process describes how a subtest starts a child process that will be killed.
type Process struct {
	// Database is the address of the store's database for the child process.
	Database string
	// Command returns the command that calls Run in a new process, for the subtest t only.
	Command func(ctx context.Context, t T) (*exec.Cmd, error)
}

// variable is the environment variable that contains the command for a child process.
const variable = "SEMELTEST_CHILD"

// order is the command for a child process: the process delivers the messages up to Message, and is killed at Point.
type order struct {
	// Test is the name of the subtest.
	Test     string
	Database string
	Suffix   string
	Point    point
	Message  int
}

// ordered returns the command for the current process, or nil if the process is not a child process.
func ordered() *order {
	text, is := os.LookupEnv(variable)
	if !is {
		return nil
	}
	o := &order{}
	if json.Unmarshal([]byte(text), o) != nil {
		return nil
	}
	return o
}

// Ordered returns the name of the subtest that a child process runs; empty in any other process.
func Ordered() string {
	if o := ordered(); o != nil {
		return o.Test
	}
	return ""
}

// Database returns the database that a child process opens. In any other process, the result is the parameter own.
func Database(own string) string {
	if o := ordered(); o != nil {
		return o.Database
	}
	return own
}

// lastWords is the text that a child process prints before it is killed.
const lastWords = "semeltest: at the point of the kill"

// kill ends this process with SIGKILL and does not return.
func kill() {
	_, _ = os.Stdout.WriteString(lastWords + "\n")
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {} // the signal may reach another thread of this process first
}

// obey delivers messages in a child process until the process is killed.
func (s *session[Tx]) obey(o *order) error {
	w := newWorld(s.t, s.start, o.Suffix)
	for i := range o.Message {
		if err := w.deliverAndCheck(i, acks()...); err != nil {
			return err
		}
	}
	w.plan.set(func(p *plan) { p.crash, p.skip, p.kill = o.Point, w.lastStep(), kill })
	if err := w.deliverAndCheck(o.Message, acks()...); err != nil {
		return err
	}
	return fmt.Errorf("the child process did not reach the point %s", o.Point)
}

// killed kills a child process at a point of the last message that has an effect, and redelivers all messages.
func killed[Tx any](s *session[Tx], p point) error {
	last := s.baseline.acts[len(s.baseline.acts)-1]
	expected := s.world()
	if err := expected.killable(); err != nil {
		return err
	}
	empty := expected.effect()
	for i := range last {
		if err := expected.deliverAndCheck(i, acks()...); err != nil {
			return err
		}
	}
	expected.plan.set(func(q *plan) { q.crash, q.skip = p, expected.lastStep() })
	_, _ = expected.deliverOne(last)
	want := expected.effect()
	expected.stop()
	w := s.world()
	w.stop()
	if err := w.killChild(order{Test: s.t.Name(), Point: p, Message: last}); err != nil {
		return err
	}
	switch got := w.effect(); {
	case got == empty && want != empty:
		return errors.New(saysElsewhere)
	case got != want:
		return fmt.Errorf(saysKilled, w.name(last), p, describeDifference(got, want))
	}
	w.boot()
	err := eachMessage(w, func(i int) error { return w.deliverAndCheck(i, acks()...) })
	if err != nil {
		return err
	}
	what := "a process was killed " + string(p) + " of its last message, and all messages were redelivered"
	return s.same(w, saysTwice, what, w.advice())
}

// killable returns an error if the subtest cannot kill a child process. The error is a *NotRun if the Handler has no
// Process.
func (w *world[Tx]) killable() error {
	_, memory := any(w.Store).(*memstore.Store)
	switch {
	case w.Process == nil:
		return &NotRun{"Handler.Process is not set"}
	case memory:
		return errors.New("Handler.Process is set, but the memory store ends with its process; " +
			"use a SQLite file or PostgreSQL, or leave Process empty")
	case runtime.GOOS == "windows":
		return &NotRun{"Windows has no SIGKILL"}
	}
	return nil
}

// mostOutput is the number of bytes of a child process's output that an error contains.
const mostOutput = 2000

// killChild starts a child process with a command and waits until that process was killed.
func (w *world[Tx]) killChild(o order) error {
	o.Database, o.Suffix = w.Process.Database, strings.TrimPrefix(w.suffix, " ")
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	folder, err := os.MkdirTemp("", "semeltest-") // a killed process does not remove its temporary files
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	child, err := w.Process.Command(ctx, w.t)
	if err != nil {
		return fmt.Errorf("start this program again as a child process: %w", err)
	}
	child.Env = append(child.Environ(), variable+"="+string(text), "TMPDIR="+folder)
	child.WaitDelay = patience
	output, err := child.CombinedOutput()
	if child.ProcessState == nil {
		return fmt.Errorf("start this program again as a child process: %w", err)
	}
	exit, died := errors.AsType[*exec.ExitError](err)
	if died && exit.ExitCode() == -1 && bytes.Contains(output, []byte(lastWords)) {
		return nil
	}
	if len(output) > mostOutput {
		output = output[len(output)-mostOutput:]
	}
	return fmt.Errorf(saysAlive, child.ProcessState, bytes.TrimSpace(output))
}
