package metrics

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certify writes a certificate and its private key. The authority in the parameter by signs the certificate.
// If by is nil, the certificate is self-signed.
func certify(t *testing.T, file string, by *tls.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: by == nil, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	parent, signer := of, any(key)
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey
	}
	raw, err := x509.CreateCertificate(rand.Reader, of, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{file: {Type: "CERTIFICATE", Bytes: raw}, file + ".key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := tls.LoadX509KeyPair(file, file+".key")
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func TestMetricsAreServedEncrypted(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	authority := certify(t, in("authority"), nil)
	certify(t, in("server"), &authority)
	client, stranger := certify(t, in("client"), &authority), certify(t, in("stranger"), nil)
	files := &TLS{Certificate: in("server"), Key: in("server.key"), Clients: in("authority")}
	s := openServer(t, Options{TLS: files, Consumers: []string{"billing"}})
	ask := func(path string, shown ...tls.Certificate) (int, error) {
		trusted, err := files.Trusted()
		if err != nil {
			t.Fatal(err)
		}
		trusted.Certificates = shown
		c := http.Client{Transport: &http.Transport{TLSClientConfig: trusted, DisableKeepAlives: true}}
		answer, err := c.Get("https://" + s.Address() + path)
		if err != nil {
			return 0, err
		}
		return answer.StatusCode, answer.Body.Close()
	}
	t.Run("K4_a_certificate_of_the_clients_gives_access", func(t *testing.T) {
		if code, err := ask(PathMetrics, client); code != http.StatusOK || err != nil {
			t.Errorf("%d, %v", code, err)
		}
	})
	t.Run("K4_without_one_there_are_no_metrics_and_bare_statuses", func(t *testing.T) {
		if code, err := ask(PathMetrics); code != http.StatusUnauthorized || err != nil {
			t.Errorf("%d, %v", code, err)
		}
		if code, err := ask(PathLive); code != http.StatusOK || err != nil {
			t.Errorf("%d, %v", code, err)
		}
	})
	t.Run("K4_a_stranger_s_certificate_is_refused", func(t *testing.T) {
		if code, err := ask(PathMetrics, stranger); err == nil {
			t.Errorf("the response is %d", code)
		}
	})
	t.Run("K4_a_renewed_certificate_is_served", func(t *testing.T) {
		certify(t, in("server"), &authority)
		if code, err := ask(PathMetrics, client); code != http.StatusOK || err != nil {
			t.Errorf("%d, %v", code, err)
		}
	})
	t.Run("K4_files_that_are_none_are_found_at_the_start", func(t *testing.T) {
		for _, wrong := range []TLS{{Certificate: in("none"), Key: in("server.key")}, {Certificate: in("server"), Key: in("client.key")}, {Certificate: in("server"), Key: in("server.key"), Clients: in("server.key")}} {
			if _, err := (Options{Address: "127.0.0.1:0", TLS: &wrong}).listen(); err == nil || !strings.HasPrefix(err.Error(), "listen.tls") {
				t.Errorf("%+v: %v", wrong, err)
			}
		}
	})
}

func TestRisksAndSuppressedEffectsAreExported(t *testing.T) {
	t.Run("K4_a_declared_risk_is_1", func(t *testing.T) {
		s := openServer(t, Options{Loopback: true, Consumers: []string{"billing"}, Risks: map[string][]string{"billing": {"may double"}}})
		if _, text := get(s, PathMetrics); !strings.Contains(text, `semel_residual_risk{consumer="billing",risk="may double"} 1`) {
			t.Errorf("the scrape lacks the risk:\n%s", text)
		}
	})
	t.Run("K5_an_unknown_type_is_counted_from_0", func(t *testing.T) {
		s := openServer(t, Options{Loopback: true, Consumers: []string{"billing"}})
		if _, text := get(s, PathMetrics); !strings.Contains(text, `semel_unapplied_total{consumer="billing",how="parked",reason="unknown type"} 0`) {
			t.Errorf("a counter that starts at 1 would show no increase:\n%s", text)
		}
	})
}
