//go:build unix

package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

	"github.com/semel-go/semel"
)

const password = "correct horse"

// newSecureFixture returns a topic and database for a test. The fake broker of the topic requires TLS and a
// password.
func newSecureFixture(t *testing.T) fixture {
	t.Helper()
	s := fixture{dir: t.TempDir(), topic: "payments", binary: os.Getenv(built)}
	certificate := s.newCertificate(t)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, s.topic), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{certificate}}),
		kfake.EnableSASL(), kfake.Superuser("PLAIN", "shop", password), kfake.Superuser("SCRAM-SHA-256", "shop", password), kfake.Superuser("SCRAM-SHA-512", "shop", password))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	s.brokers = cluster.ListenAddrs()
	s.write(t, "password", password+"\n")
	s.write(t, "wrong", "incorrect horse\n")
	client := s.client(t, kgo.DialTLSConfig(&tls.Config{InsecureSkipVerify: true}), kgo.SASL(plain.Auth{User: "shop", Pass: password}.AsMechanism()))
	defer client.Close()
	if err := client.ProduceSync(t.Context(), s.makePayments(1, 20)...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	return s
}

// newCertificate creates the broker's certificate, and writes its certificate authority to ca.pem.
func (s fixture) newCertificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s.write(t, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// securePolicy writes a policy that reads the topic into SQLite with the given security settings.
func (s fixture) securePolicy(t *testing.T, consumer, security string) string {
	t.Helper()
	name := consumer + ".yaml"
	s.write(t, name, `version: 1
stores: {shop: {sqlite: {path: `+consumer+`.db}, migrate: true, setup: setup.sql}}
sources:
  payments:
    kafka: {brokers: "${KAFKA_BROKERS}", topics: payments, `+security+`}
consumers:
  `+consumer+`:
    from: payments
    store: shop
    identity: {id: id, source: source}
    handler: {sql: {params: {payment: id}, statements: ["insert into entries values (:payment)"]}}
`)
	s.write(t, "setup.sql", "create table entries (payment text not null);")
	return name
}

func TestTopicsAreReadUnderTLSByUsersWithAPassword(t *testing.T) {
	s := newSecureFixture(t)
	for name, sasl := range map[string]string{
		"plain":  `{plain: {user: shop, password_file: password}}`,
		"scram1": `{scram_sha_256: {user: shop, password_file: password}}`,
		"scram2": `{scram_sha_512: {user: shop, password: "${PASSWORD}"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PASSWORD", password)
			counts, log := s.run(t, s.securePolicy(t, name, "tls: {ca: ca.pem}, sasl: "+sasl), 0)
			if counts[name] != (semel.Counts{Deliveries: 22, Applied: 20, Duplicates: 2}) {
				t.Errorf("%+v: %s", counts[name], log)
			}
		})
	}
}

func TestWhatIsWrongWithAConnectionIsSaidWithoutTheSecret(t *testing.T) {
	s := newSecureFixture(t)
	for name, c := range map[string]struct{ security, says string }{
		"wrong_password":    {`tls: {ca: ca.pem}, sasl: {plain: {user: shop, password_file: wrong}}`, "TLS and SASL match their listener"},
		"unknown_authority": {`tls: true, sasl: {plain: {user: shop, password_file: password}}`, "certificate signed by unknown authority"},
		"no_TLS":            {`sasl: {scram_sha_512: {user: shop, password_file: password}}`, "TLS and SASL match their listener"},
		"no_user":           {`tls: {ca: ca.pem}`, "source does not work"},
	} {
		t.Run(name, func(t *testing.T) {
			if log := s.runUntilLogged(t, s.securePolicy(t, name, c.security), c.says); strings.Contains(log, "correct horse") {
				t.Errorf("it shows the password: %s", log)
			}
		})
	}
}

// runUntilLogged runs a policy until its log contains the text, stops the run, and returns the log.
func (s fixture) runUntilLogged(t *testing.T, policy, says string) string {
	t.Helper()
	cmd := s.command("run", "--config", policy, "--exit-when-idle", "1s")
	log := &watchedLog{says: says, said: make(chan struct{})}
	cmd.Stderr, cmd.Env = log, append(cmd.Env, "SSL_CERT_FILE="+os.DevNull)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-log.said:
	case <-time.After(patience):
		t.Errorf("it does not say %q: %s", says, log)
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Errorf("a stop is no failure: %v: %s", err, log)
	}
	return log.String()
}

// watchedLog is a log that signals when it contains a text.
type watchedLog struct {
	says string
	said chan struct{}

	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (w *watchedLog) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := strings.Contains(w.text.String(), w.says)
	w.text.Write(p)
	if !before && strings.Contains(w.text.String(), w.says) {
		close(w.said)
	}
	return len(p), nil
}

func (w *watchedLog) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}
