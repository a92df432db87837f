package services

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// private is a server of one test: its folder, its port, which stays the same over restarts, and
// its present process. At the test's end the process is killed and the folder removed.
type private struct {
	t       testing.TB
	folder  string
	port    int
	process *process
}

func newPrivate(t testing.TB, in programs) private {
	t.Helper()
	return private{t: t, folder: in.privateFolder(t), port: freePort(t)}
}

// Address is host and port.
func (p *private) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// Kill ends all processes of the server at once, with SIGKILL, as when its machine loses power
// but for what the kernel holds.
func (p *private) Kill() {
	p.t.Helper()
	p.process.kill()
}

// Freeze stops all processes of the server where they are, with SIGSTOP. Connections stay open
// and nothing answers.
func (p *private) Freeze() {
	p.t.Helper()
	if err := p.process.signalAll(syscall.SIGSTOP); err != nil {
		p.t.Fatal(err)
	}
}

// Thaw lets a frozen server go on.
func (p *private) Thaw() {
	p.t.Helper()
	if err := p.process.signalAll(syscall.SIGCONT); err != nil {
		p.t.Fatal(err)
	}
}

// end sends a signal and waits until the server has ended.
func (p *private) end(signal syscall.Signal, most time.Duration) {
	p.t.Helper()
	_ = p.process.signalAll(syscall.SIGCONT)
	p.process.signal(signal)
	if !p.process.wait(most) {
		p.t.Errorf("the server in %s did not end within %s of %v; it is killed", p.folder, most, signal)
		p.process.kill()
	}
}

func (p *private) remove() {
	if p.process != nil {
		p.process.kill()
	}
	if err := os.RemoveAll(p.folder); err != nil {
		p.t.Error(err)
	}
}

func (p *private) data() string { return filepath.Join(p.folder, "data") }
