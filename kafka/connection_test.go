package kafka

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// wire is a process's connection to the brokers, in memory. A frozen wire keeps the written bytes and delivers them
// after the call of thaw, as a network does. A cut wire behaves like the connection of a killed process.
type wire struct {
	network *kfake.VirtualNetwork
	// The latency of each write, in both directions.
	latency time.Duration

	mu    sync.Mutex // guards the fields below
	held  chan struct{}
	gone  chan struct{}
	pumps sync.WaitGroup
	ends  []net.Conn
}

func newWire(network *kfake.VirtualNetwork, latency time.Duration) *wire {
	return &wire{network: network, latency: latency, gone: make(chan struct{})}
}

func (w *wire) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if !w.pass(ctx.Done()) {
		return nil, net.ErrClosed
	}
	far, err := w.network.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	near, inner := net.Pipe()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, near, inner, far)
	greets := new(atomic.Bool)
	w.pumps.Go(func() { w.pump(inner, far, func([]byte) bool { return greets.Swap(false) }) })
	w.pumps.Go(func() {
		w.pump(far, inner, func(request []byte) bool {
			greets.Store(len(request) > 6 && binary.BigEndian.Uint16(request[4:]) == uint16(kmsg.ApiVersions))
			return greets.Load()
		})
	})
	return near, nil
}

// pump copies bytes in one direction. A greeting also passes a frozen wire, because the client cannot interrupt its
// request for the API versions of a new connection, and may hold a lock during the request. Another goroutine that
// waits for this lock stops virtual time, so the test would never call thaw.
func (w *wire) pump(to, from net.Conn, greeting func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if !greeting(buffer[:n]) && !w.pass(nil) {
			return
		}
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// pass waits for the latency and, if the wire is frozen, until the test calls thaw. The result is false if the wire is
// cut. The waits also end with the channel done, because a client that gives up a dial holds a lock until the dial
// returns, and a goroutine that waits for this lock stops virtual time.
func (w *wire) pass(done <-chan struct{}) bool {
	if w.latency > 0 {
		select {
		case <-time.After(w.latency):
		case <-done:
			return false
		}
	}
	w.mu.Lock()
	held := w.held
	w.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-w.gone:
		case <-done:
		}
	}
	select {
	case <-w.gone:
		return false
	case <-done:
		return false
	default:
		return true
	}
}

func (w *wire) freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held == nil {
		w.held = make(chan struct{})
	}
}

func (w *wire) thaw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held != nil {
		close(w.held)
		w.held = nil
	}
}

// disconnect closes every connection and prevents new connections.
func (w *wire) disconnect() {
	w.mu.Lock()
	ends := w.ends
	w.ends = nil
	select {
	case <-w.gone:
	default:
		close(w.gone)
	}
	w.mu.Unlock()
	for _, c := range ends {
		c.Close()
	}
	w.pumps.Wait()
}

func TestAFrozenWireLetsAConnectionBeMade(t *testing.T) {
	inWorld(t, "so that virtual time continues", 1, func(t *testing.T, w *world) {
		wire := newWire(&w.network, 0)
		w.wires = append(w.wires, wire)
		conn, err := wire.dial(t.Context(), "tcp", w.cluster.ListenAddrs()[0])
		must(t, err)
		wire.freeze()
		answered := func(r kmsg.Request) error {
			if _, err := conn.Write(kmsg.NewRequestFormatter().AppendRequest(nil, r, 1)); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
			_, err := io.ReadAtLeast(conn, make([]byte, 1<<16), 4)
			return err
		}
		if err := answered(kmsg.NewPtrApiVersionsRequest()); err != nil {
			t.Errorf("a greeting on a frozen wire: %v", err)
		}
		if err := answered(kmsg.NewPtrMetadataRequest()); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a request on a frozen wire: %v", err)
		}
	})
}

// A dial must end as soon as the client gives up the dial. If the dial did not end, virtual time would stop, because
// the client holds a lock until the dial returns.
func TestADialThatIsGivenUpEndsAtOnce(t *testing.T) {
	for name, frozen := range map[string]bool{"during its latency": false, "on a frozen wire": true} {
		inWorld(t, name, 1, func(t *testing.T, w *world) {
			wire := newWire(&w.network, time.Second)
			w.wires = append(w.wires, wire)
			if frozen {
				wire.freeze()
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			began := time.Now()
			if _, err := wire.dial(ctx, "tcp", w.cluster.ListenAddrs()[0]); err == nil || time.Since(began) != time.Millisecond {
				t.Errorf("given up after 1 ms, it ended after %v: %v", time.Since(began), err)
			}
		})
	}
}

func TestBrokersThatCannotBeReachedAreOneErrorWithOneCause(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"refused": {&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, "dial tcp: connection refused"},
		"other":   {errors.New("x509: certificate signed by unknown authority"), "unable to dial: x509: certificate signed by unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(Config{Brokers: []string{"a:1", "b:1"}, Topics: []string{"payments"}, Group: "g", Logger: slog.New(slog.DiscardHandler)})
			must(t, err)
			s.brokers.dial = func(context.Context, string, string) (net.Conn, error) { return nil, c.err }
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err = s.join(ctx)
			if closed := s.Close(t.Context()); closed != nil {
				t.Error(closed)
			}
			if !errors.Is(err, c.err) {
				t.Fatalf("%v is not in %v", c.err, err)
			}
			if text := err.Error(); strings.Count(text, "none of the brokers") != 1 || !strings.HasSuffix(text, "match their listener: "+c.want) || strings.Contains(text, "\n") {
				t.Errorf("the error is %q", text)
			}
		})
	}
}

func TestAFetchThatIsCancelledSaysWhetherABrokerAnswers(t *testing.T) {
	t.Run("law_13_a_source_without_a_broker_does_not_say_that_it_works", func(t *testing.T) {
		c := cluster(t, kfake.SeedTopics(1, "orders"))
		r := read(t, Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing"})
		c.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		if got, err := r.Fetch(ctx, wide); len(got) > 0 || err == nil {
			t.Errorf("%d deliveries, %v", len(got), err)
		}
	})
}

// newCertificate creates a certificate for 127.0.0.1, and the pool that contains it.
func newCertificate(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestConnectionsAreEncryptedAndAuthenticated(t *testing.T) {
	t.Parallel()
	own, pool := newCertificate(t)
	trusted := &tls.Config{RootCAs: pool}
	c := cluster(t, kfake.SeedTopics(1, "orders", "letters"), kfake.EnableSASL(), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{own}}),
		kfake.Superuser("PLAIN", "reader", "secret"), kfake.Superuser("SCRAM-SHA-256", "reader", "secret"), kfake.Superuser("SCRAM-SHA-512", "reader", "secret"))
	p, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DialTLSConfig(trusted), kgo.SASL(plain.Auth{User: "reader", Pass: "secret"}.AsMechanism()))
	must(t, err)
	t.Cleanup(p.Close)
	put(t, p, "orders", 0, "0")
	config := func(group string, m sasl.Mechanism) Config {
		return Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: group, DeadLetters: "letters", TLS: trusted, SASL: []sasl.Mechanism{m}}
	}
	for name, m := range map[string]sasl.Mechanism{
		"I0_PLAIN":         plain.Auth{User: "reader", Pass: "secret"}.AsMechanism(),
		"I0_SCRAM-SHA-256": scram.Auth{User: "reader", Pass: "secret"}.AsSha256Mechanism(),
		"I0_SCRAM-SHA-512": scram.Auth{User: "reader", Pass: "secret"}.AsSha512Mechanism(),
	} {
		t.Run(name, func(t *testing.T) {
			r := read(t, config(name, m))
			r.ack(r.take(1)...)
		})
	}
	t.Run("a wrong password", func(t *testing.T) {
		c.ControlKey(int16(kmsg.SASLAuthenticate), func(request kmsg.Request) (kmsg.Response, error, bool) {
			response := request.ResponseKind().(*kmsg.SASLAuthenticateResponse) // kfake would close the connection; Kafka sends this answer
			response.ErrorCode = kerr.SaslAuthenticationFailed.Code
			return response, nil, true
		})
		r := read(t, config("wrong", plain.Auth{User: "reader", Pass: "hunter2"}.AsMechanism()))
		if err := r.fetchError(); !strings.Contains(err.Error(), "refused the user or its password") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("it says: %v", err)
		}
	})
	t.Run("a certificate of an unknown authority", func(t *testing.T) {
		unknown := config("unknown", plain.Auth{User: "reader", Pass: "secret"}.AsMechanism())
		unknown.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
		if err := read(t, unknown).fetchError(); !strings.Contains(err.Error(), "certificate") {
			t.Errorf("it says: %v", err)
		}
	})
	t.Run("no TLS although the listener needs it", func(t *testing.T) {
		open := config("open", plain.Auth{User: "reader", Pass: "secret"}.AsMechanism())
		open.TLS = nil
		if err := read(t, open).fetchError(); !strings.Contains(err.Error(), "TLS") {
			t.Errorf("it says: %v", err)
		}
	})
}

func TestAStaticMemberComesBackWithoutARebalance(t *testing.T) {
	t.Parallel()
	c := cluster(t, kfake.SeedTopics(2, "orders"))
	p := newProducer(t, c.ListenAddrs())
	put(t, p, "orders", 0, "0")
	put(t, p, "orders", 1, "1")
	config := Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", Instance: "one"}
	first := read(t, config)
	first.ack(first.take(2)...)
	config.Instance = "two"
	second := read(t, config)
	stop := second.keepFetching(nil)
	defer stop()
	second.await("a lane", func(told []string) bool { return len(told) == 1 })
	first.await("the loss of a lane", func(told []string) bool { return len(told) == 4 })
	config.Instance = "one"
	first.close()
	again := read(t, config)
	goOn := again.keepFetching(nil)
	defer goOn()
	again.await("its lane", func(told []string) bool { return len(told) == 1 })
	if len(second.notifications()) != 1 || again.notifications()[0] == second.notifications()[0] {
		t.Errorf("the member that came back was told %v, the other %v", again.notifications(), second.notifications())
	}
}
