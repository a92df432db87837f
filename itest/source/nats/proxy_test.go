package nats_test

import (
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/nats"
)

// proxy is a way to the server that a test can block, so that a process looks frozen to the server, and the server to the
// process. Bytes that were sent while the way was blocked arrive afterwards.
type proxy struct {
	server string
	listen net.Listener
	open   worker.Group

	mu      sync.Mutex
	unblock *sync.Cond
	blocked bool
	conns   []net.Conn
}

// through returns a proxy and the configuration of a source that uses it.
func through(t testing.TB, s *server.Server) (*proxy, nats.Config) {
	t.Helper()
	listen, err := net.Listen("tcp", "127.0.0.1:0")
	must.OK(t, err)
	p := &proxy{server: strings.TrimPrefix(s.ClientURL(), "nats://"), listen: listen}
	p.unblock = sync.NewCond(&p.mu)
	p.open.Go(p.accept)
	t.Cleanup(func() {
		p.block(false)
		_ = listen.Close() // the test ends
		p.cut()
		p.open.Wait()
	})
	c := config(s)
	c.Servers = []string{"nats://" + listen.Addr().String()}
	return p, c
}

func (p *proxy) accept() {
	for {
		from, err := p.listen.Accept()
		if err != nil {
			return
		}
		to, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = from.Close() // the server is stopped
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, from, to)
		p.mu.Unlock()
		p.open.Go(func() { p.copy(from, to) })
		p.open.Go(func() { p.copy(to, from) })
	}
}

func (p *proxy) copy(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 1<<16)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		for p.blocked {
			p.unblock.Wait()
		}
		p.mu.Unlock()
		if _, failed := to.Write(buffer[:n]); failed != nil || err != nil {
			return
		}
	}
}

func (p *proxy) block(on bool) {
	p.mu.Lock()
	p.blocked = on
	p.unblock.Broadcast()
	p.mu.Unlock()
}

// cut closes all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		_ = c.Close() // the other side may have closed it
	}
	p.conns = nil
}

// answers records what all clients answer to deliveries.
type answers struct {
	mu  sync.Mutex
	all []answer
}

type answer struct {
	subject, body string
}

// record subscribes to the answers of all clients.
func record(t testing.TB, js jetstream.JetStream) *answers {
	t.Helper()
	a := &answers{}
	sub, err := js.Conn().Subscribe("$JS.ACK.>", func(m *client.Msg) {
		a.mu.Lock()
		a.all = append(a.all, answer{m.Subject, string(m.Data)})
		a.mu.Unlock()
	})
	must.OK(t, err)
	must.OK(t, js.Conn().Flush())
	t.Cleanup(func() { _ = sub.Unsubscribe() }) // the connection may be closed
	return a
}

// count returns how many answers have a body that begins with the given text, to deliveries with the given number: 1 is the
// first delivery of a message.
func (a *answers) count(body string, delivered string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, one := range a.all {
		words := strings.Split(one.subject, ".")
		if strings.HasPrefix(one.body, body) && (delivered == "" || words[len(words)-5] == delivered) {
			n++
		}
	}
	return n
}
