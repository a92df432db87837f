package assembly

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// writePEM writes a PEM block to a file.
func writePEM(t *testing.T, folder, name, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ownCertificate writes a self-signed certificate, me.pem, and its key, me.key.
func ownCertificate(t *testing.T, folder string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, folder, "me.pem", "CERTIFICATE", der)
	writePEM(t, folder, "me.key", "PRIVATE KEY", secret)
}

func TestTheKeysOfAnEndpointAreApplied(t *testing.T) {
	calls := make(chan *http.Request, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls <- r
		w.Header().Set("Retry-After", "600")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	folder := t.TempDir()
	writePEM(t, folder, "ca.pem", "CERTIFICATE", server.Certificate().Raw)
	ownCertificate(t, folder)
	p := parseEndpointPolicy(t, folder, `        headers: {Authorization: "Bearer ${SECRET}"}
        pass: [x-tenant]
        timeout: 5s
        max_retry_after: 90s
        sign: {secret: "${SIGNING}"}
        tls: {ca: ca.pem, cert: me.pem, key: me.key}
`, server.URL)
	endpoint, err := (&Assembly{policy: p}).endpoint(p.Consumers[0])
	if err != nil {
		t.Fatal(err)
	}
	m := semel.NewMessage(semel.Key{Consumer: "billing", ID: "17"}, nil, semel.Header{Name: "X-Tenant", Value: []byte("north")})
	err = endpoint.Handle(t.Context(), m)
	if decided, ok := err.(*semel.HandlerError); !ok || decided.After != 90*time.Second {
		t.Fatalf("%v", err)
	}
	got := <-calls
	if h := got.Header; h.Get("Authorization") != "Bearer hunter2" || h.Get("X-Tenant") != "north" || h.Get("Webhook-Id") != m.IdempotencyKey("handler") || len(got.TLS.PeerCertificates) != 1 {
		t.Errorf("%v", h)
	}
}

// parseEndpointPolicy returns a policy with an endpoint at url and further keys of the endpoint.
func parseEndpointPolicy(t *testing.T, folder, keys, url string) *policy.Policy {
	t.Helper()
	text := `version: 1
stores: {shop: {sqlite: {path: shop.db}}}
sources: {orders: {file: {path: in.jsonl, format: cloudevents}}}
consumers:
  billing:
    from: orders
    store: shop
    strategy: lease
    identity: {id: id}
    alerts: {pending_age: 1m}
    handler:
      http:
        url: "` + url + "\"\n" + keys
	env := map[string]string{"SECRET": "hunter2", "SIGNING": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	p, faults := policy.Parse(filepath.Join(folder, "semel.yaml"), []byte(text), func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if p == nil {
		t.Fatal(faults)
	}
	return p
}

func TestUnusableFilesOfAnEndpoint(t *testing.T) {
	folder := t.TempDir()
	ownCertificate(t, folder)
	for keys, says := range map[string]string{
		"        tls: {ca: none.pem}\n":                "handler.http.tls.ca: ",
		"        tls: {ca: me.key}\n":                  "holds no certificate",
		"        tls: {cert: me.key, key: me.pem}\n":   "handler.http.tls.cert: ",
		"        tls: {cert: me.pem, key: none.key}\n": "handler.http.tls.cert: ",
	} {
		p := parseEndpointPolicy(t, folder, keys, "https://bank.example")
		if _, err := (&Assembly{policy: p}).endpoint(p.Consumers[0]); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", keys, err)
		}
	}
}
