//go:build unix

package security

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority is a certificate authority that signs certificates of brokers and clients.
type authority struct {
	t           testing.TB
	folder      string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{t: t, folder: t.TempDir()}
	a.key = a.newKey()
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	a.certificate = a.sign(template, template, a.key)
	a.write("ca.pem", pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return key
}

func (a *authority) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	a.t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate
}

// issue creates a certificate and writes name.pem, name.key, and both together in name.both.pem.
func (a *authority) issue(name string, number int64) {
	a.t.Helper()
	key := a.newKey()
	certificate := a.sign(&x509.Certificate{SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, a.certificate, key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	private, public := pem.Block{Type: "PRIVATE KEY", Bytes: der}, pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}
	a.write(name+".pem", public)
	a.write(name+".key", private)
	a.write(name+".both.pem", private, public)
}

func (a *authority) path(file string) string { return filepath.Join(a.folder, file) }

func (a *authority) write(file string, blocks ...pem.Block) {
	a.t.Helper()
	var text []byte
	for i := range blocks {
		text = append(text, pem.EncodeToMemory(&blocks[i])...)
	}
	if err := os.WriteFile(a.path(file), text, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// trusting returns the TLS configuration of a client that trusts the authority.
func (a *authority) trusting() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return &tls.Config{RootCAs: pool}
}

// named returns the same configuration with a certificate of the client.
func (a *authority) named(name string) *tls.Config {
	a.t.Helper()
	own, err := tls.LoadX509KeyPair(a.path(name+".pem"), a.path(name+".key"))
	if err != nil {
		a.t.Fatal(err)
	}
	c := a.trusting()
	c.Certificates = []tls.Certificate{own}
	return c
}
