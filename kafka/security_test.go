package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
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

// certificate makes one for 127.0.0.1, and the pool that knows it.
func certificate(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestConnectionsAreEncryptedAndAuthenticated(t *testing.T) {
	t.Parallel()
	own, pool := certificate(t)
	trusted := &tls.Config{RootCAs: pool}
	c := cluster(t, kfake.SeedTopics(1, "orders", "letters"), kfake.EnableSASL(), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{own}}),
		kfake.Superuser("PLAIN", "reader", "secret"), kfake.Superuser("SCRAM-SHA-256", "reader", "secret"), kfake.Superuser("SCRAM-SHA-512", "reader", "secret"))
	p, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.DialTLSConfig(trusted), kgo.SASL(plain.Auth{User: "reader", Pass: "secret"}.AsMechanism()))
	if err != nil {
		t.Fatal(err)
	}
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
			response := request.ResponseKind().(*kmsg.SASLAuthenticateResponse) // as Kafka answers; kfake hangs up
			response.ErrorCode = kerr.SaslAuthenticationFailed.Code
			return response, nil, true
		})
		r := read(t, config("wrong", plain.Auth{User: "reader", Pass: "hunter2"}.AsMechanism()))
		if err := r.fails(); !strings.Contains(err.Error(), "refused the user or its password") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("it says: %v", err)
		}
	})
	t.Run("a certificate that nobody vouches for", func(t *testing.T) {
		unknown := config("unknown", plain.Auth{User: "reader", Pass: "secret"}.AsMechanism())
		unknown.TLS = &tls.Config{RootCAs: x509.NewCertPool()}
		if err := read(t, unknown).fails(); !strings.Contains(err.Error(), "certificate") {
			t.Errorf("it says: %v", err)
		}
	})
	t.Run("no encryption where the listener wants it", func(t *testing.T) {
		open := config("open", plain.Auth{User: "reader", Pass: "secret"}.AsMechanism())
		open.TLS = nil
		if err := read(t, open).fails(); !strings.Contains(err.Error(), "TLS") {
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
	if len(second.notes()) != 1 || again.notes()[0] == second.notes()[0] {
		t.Errorf("the one that came back was told %v, the other %v", again.notes(), second.notes())
	}
}
