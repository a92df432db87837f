package hookserver

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/webhook"
)

func openServer(t *testing.T, o Options) *Server {
	t.Helper()
	o.Address, o.Logger = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	if o.Connections == 0 {
		o.Connections = 10
	}
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// sendRequest sends a request and returns the status of the response.
func sendRequest(t *testing.T, c net.Conn, request string) int {
	t.Helper()
	if _, err := fmt.Fprint(c, request); err != nil {
		t.Fatal(err)
	}
	a, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Body.Close()
	return a.StatusCode
}

const getRequest = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"

func TestPathsAndConnections(t *testing.T) {
	t.Run("F3_a_path_that_nobody_has_is_404", func(t *testing.T) {
		s := openServer(t, Options{})
		if got := sendRequest(t, dial(t, s), getRequest); got != 404 {
			t.Errorf("%d", got)
		}
		s.Handle("/a", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
		if got := sendRequest(t, dial(t, s), getRequest); got != http.StatusTeapot {
			t.Errorf("%d", got)
		}
	})
	t.Run("F3_a_connection_beyond_the_bound_waits_for_another_to_end", func(t *testing.T) {
		s := openServer(t, Options{Connections: 1})
		first, second := dial(t, s), dial(t, s)
		if got := sendRequest(t, first, getRequest); got != 404 {
			t.Errorf("%d", got)
		}
		_ = first.Close()
		if got := sendRequest(t, second, getRequest); got != 404 {
			t.Errorf("%d", got)
		}
	})
}

func TestSlowClients(t *testing.T) {
	t.Run("F3_a_body_that_does_not_come_is_not_waited_for", func(t *testing.T) {
		s := openServer(t, Options{})
		r, err := webhook.New(webhook.Config{Name: "a", Scheme: webhook.GitHub(), Secrets: []string{"a secret of nobody"}, ReadWithin: 20 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		s.Handle("/a", r)
		request := "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\nX-Hub-Signature-256: sha256=" + strings.Repeat("00", 32) + "\r\n\r\nabc"
		if got := sendRequest(t, dial(t, s), request); got != 400 || r.Count(webhook.Incomplete) != 1 {
			t.Errorf("%d", got)
		}
	})
}

// certify writes a certificate for this machine with the given serial number.
func certify(t *testing.T, folder string, serial int64) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(name, time.Time{}, time.Unix(serial, 0)); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestTLS(t *testing.T) {
	serial := func(t *testing.T, s *Server) int64 {
		t.Helper()
		c, err := tls.Dial("tcp", s.Address(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	t.Run("F3_a_certificate_is_read_again_when_it_changes_and_kept_when_it_cannot_be_read", func(t *testing.T) {
		folder := t.TempDir()
		cert, key := certify(t, folder, 1)
		s := openServer(t, Options{Cert: cert, Key: key})
		if got := serial(t, s); got != 1 {
			t.Errorf("%d", got)
		}
		certify(t, folder, 2)
		if got := serial(t, s); got != 2 {
			t.Errorf("after the change: %d", got)
		}
		if err := os.WriteFile(cert, []byte("none"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := serial(t, s); got != 2 {
			t.Errorf("after the file was damaged: %d", got)
		}
	})
	t.Run("F3_a_certificate_whose_key_comes_later_is_told_of_once_and_shown_when_both_are_there", func(t *testing.T) {
		folder, later := t.TempDir(), t.TempDir()
		cert, key := certify(t, folder, 1)
		newCert, newKey := certify(t, later, 2)
		var said strings.Builder
		files := &certificate{cert: cert, key: key, logger: slog.New(slog.NewTextHandler(&said, nil))}
		shows := func(want int64) {
			t.Helper()
			pair, err := files.get(nil)
			if err != nil || pair.Leaf.SerialNumber.Int64() != want {
				t.Errorf("%v, want %d", err, want)
			}
		}
		shows(1)
		if err := os.Rename(newCert, cert); err != nil {
			t.Fatal(err)
		}
		for range 100 {
			shows(1)
		}
		if err := os.Rename(newKey, key); err != nil {
			t.Fatal(err)
		}
		shows(2)
		if lines := strings.Count(said.String(), "\n"); lines != 1 {
			t.Errorf("%d lines:\n%s", lines, said.String())
		}
		if err := os.Remove(key); err != nil {
			t.Fatal(err)
		}
		shows(2)
		shows(2)
		if lines := strings.Count(said.String(), "\n"); lines != 2 {
			t.Errorf("%d lines:\n%s", lines, said.String())
		}
	})
	t.Run("F3_a_certificate_that_is_missing_is_found_at_the_start", func(t *testing.T) {
		_, err := Open(Options{Address: "127.0.0.1:0", Cert: "none.pem", Key: "none.pem", Connections: 1, Logger: slog.New(slog.DiscardHandler)})
		if err == nil || !strings.Contains(err.Error(), "none.pem") {
			t.Errorf("%v", err)
		}
	})
}
