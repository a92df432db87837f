package metrics

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

// TLS are the files of who serves https.
type TLS struct {
	// Certificate and Key are of this side. Clients are authorities; empty: no certificate
	// gives access.
	Certificate, Key, Clients string
}

// pair reads the certificate and its key. It waits for nobody, whatever the files are.
func (t *TLS) pair() (*tls.Certificate, error) {
	pair, err := shape.ReadPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("listen.tls: %w: write a certificate and its key there, in PEM", err)
	}
	return &pair, nil
}

// config is what connections are encrypted by. The certificate is read for each, so that it
// can be renewed; faults of the files are found at once. A client need show no certificate,
// since probes have none.
func (t *TLS) config() (*tls.Config, error) {
	if _, err := t.pair(); err != nil {
		return nil, err
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return t.pair() }}
	if t.Clients == "" {
		return c, nil
	}
	text, err := shape.ReadFile(t.Clients)
	if err != nil {
		return nil, fmt.Errorf("listen.tls.clients: %w: write the certificates of authorities there, in PEM", err)
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("listen.tls.clients: %s holds no certificate in PEM: write those of authorities there", t.Clients)
	}
	return c, nil
}

// known reports whether who asks has shown a certificate that gives access.
func known(r *http.Request) bool { return r.TLS != nil && len(r.TLS.VerifiedChains) > 0 }

// Trusted is what a client on this machine trusts: the certificate that is served, whatever
// name it was made for.
func (t *TLS) Trusted() (*tls.Config, error) {
	pair, err := t.pair()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error { // VerifyConnection compares it
		if len(s.PeerCertificates) == 0 || string(s.PeerCertificates[0].Raw) != string(pair.Certificate[0]) {
			return errors.New("another certificate is served than listen.tls names: the run was started with another one, or it is no run of semel")
		}
		return nil
	}}, nil
}
