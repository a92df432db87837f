package metrics

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

// TLS names the files for https.
type TLS struct {
	// Certificate and Key belong to the server. Clients has the certificate authorities of clients; if it is empty,
	// no certificate gives access.
	Certificate, Key, Clients string
}

// pair reads the certificate and its key. pair does not block, even if a file is a pipe.
func (t *TLS) pair() (*tls.Certificate, error) {
	pair, err := shape.ReadPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("listen.tls: %w: write a certificate and its key there, in PEM", err)
	}
	return &pair, nil
}

// config returns the settings of the server's connections. The certificate is read again for each connection, so it
// can be renewed; config already reports faulty files. Clients may connect without a certificate, because health
// probes have none.
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

// hasClientCertificate reports whether the client has presented a certificate that gives access.
func hasClientCertificate(r *http.Request) bool { return r.TLS != nil && len(r.TLS.VerifiedChains) > 0 }

// Trusted returns the settings of a client on this machine. The client accepts only the certificate of the server,
// whatever host name the certificate has.
func (t *TLS) Trusted() (*tls.Config, error) {
	pair, err := t.pair()
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error { // VerifyConnection compares the certificate
		if len(s.PeerCertificates) == 0 || string(s.PeerCertificates[0].Raw) != string(pair.Certificate[0]) {
			return errors.New("the server has another certificate than listen.tls names: the run was started with another certificate, or the server is not semel run")
		}
		return nil
	}}, nil
}
