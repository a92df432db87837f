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

	"github.com/semel-go/semel/itest/must"
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
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.t)
	return key
}

func (a *authority) sign(template, parent *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	a.t.Helper()
	der := must.Get(x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, a.key))(a.t)
	certificate := must.Get(x509.ParseCertificate(der))(a.t)
	return certificate
}

// issue creates a certificate and writes the certificate to name.pem, the key to name.key, and certificate and key to
// name.both.pem.
func (a *authority) issue(name string, number int64) {
	a.t.Helper()
	key := a.newKey()
	certificate := a.sign(&x509.Certificate{SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}, a.certificate, key)
	der := must.Get(x509.MarshalPKCS8PrivateKey(key))(a.t)
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
	must.OK(a.t, os.WriteFile(a.path(file), text, 0o600))
}

// clientConfig returns the TLS configuration of a client that trusts the authority.
func (a *authority) clientConfig() *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return &tls.Config{RootCAs: pool}
}

// clientConfigWith returns clientConfig with a certificate of the client.
func (a *authority) clientConfigWith(name string) *tls.Config {
	a.t.Helper()
	own := must.Get(tls.LoadX509KeyPair(a.path(name+".pem"), a.path(name+".key")))(a.t)
	c := a.clientConfig()
	c.Certificates = []tls.Certificate{own}
	return c
}
