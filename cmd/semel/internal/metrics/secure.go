package metrics

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

// TLS names the files for HTTPS.
type TLS struct {
	// Certificate and Key are the server's certificate and private key. Clients is the file with the
	// certificate authorities of client certificates; empty if client certificates give no access.
	Certificate, Key, Clients string
}

// pair reads the certificate and the private key. pair does not block, even if a file is a pipe.
func (t *TLS) pair() (*tls.Certificate, error) {
	pair, err := shape.ReadPair(t.Certificate, t.Key)
	if err != nil {
		return nil, fmt.Errorf("listen.tls: %w: write a certificate and its key there, in PEM", err)
	}
	return &pair, nil
}

// config returns the TLS settings of the server. The server reads the certificate for each connection, so
// that operators can renew the certificate. config itself reads the files once and reports faults. Clients
// may connect without a certificate, because health probes have none.
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

// Trusted returns the TLS settings for a client on this machine. The client accepts only this server's
// certificate, and ignores the host name in the certificate.
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
