package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/semel-go/semel/internal/freeport"
	"github.com/semel-go/semel/itest/services"
)

// startTLSServer starts a server with TLS, and returns its address and its self-signed certificate.
func startTLSServer(t *testing.T) (address string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, b pem.Block) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&b), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate := write("certificate.pem", pem.Block{Type: "CERTIFICATE", Bytes: signed})
	port, err := freeport.Choose()
	if err != nil {
		t.Fatal(err)
	}
	services.StartRedis(t, fmt.Sprint("tls-port ", port), "tls-cert-file "+certificate, "tls-key-file "+write("key.pem", pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		"tls-ca-cert-file "+certificate, "tls-auth-clients no")
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}))
	return fmt.Sprintf("127.0.0.1:%d", port), roots
}
