package services

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/must"
)

// privateServer is the server of one test: its folder, its port and its current process. The port stays the same
// after a restart. When the test ends, the process is killed and the folder is removed.
type privateServer struct {
	t       testing.TB
	folder  string
	port    int
	process *process
}

func newPrivate(t testing.TB, in programs) privateServer {
	t.Helper()
	return privateServer{t: t, folder: in.privateFolder(t), port: freePort(t)}
}

// Address returns the host and port of the server.
func (p *privateServer) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.port)) }

// Kill ends all processes of the server at once with SIGKILL. Data in the kernel's cache survive, unlike
// after a power failure.
func (p *privateServer) Kill() {
	p.t.Helper()
	p.process.kill()
}

// Freeze stops all processes of the server with SIGSTOP. Connections stay open, but the server does not
// answer.
func (p *privateServer) Freeze() {
	p.t.Helper()
	must.OK(p.t, p.process.signalAll(syscall.SIGSTOP))
}

// Thaw continues a frozen server.
func (p *privateServer) Thaw() {
	p.t.Helper()
	must.OK(p.t, p.process.signalAll(syscall.SIGCONT))
}

// end sends a signal and waits until the server has ended.
func (p *privateServer) end(signal syscall.Signal, most time.Duration) {
	p.t.Helper()
	_ = p.process.signalAll(syscall.SIGCONT)
	p.process.signal(signal)
	if !p.process.wait(most) {
		p.t.Errorf("the server in %s did not end within %s after %v, and was killed", p.folder, most, signal)
		p.process.kill()
	}
}

func (p *privateServer) remove() {
	if p.process != nil {
		p.process.kill()
	}
	if err := os.RemoveAll(p.folder); err != nil {
		p.t.Error(err)
	}
}

func (p *privateServer) data() string { return filepath.Join(p.folder, "data") }
