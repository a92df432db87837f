//go:build unix

package assembly

import (
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

func TestACertificateInAPipeDoesNotBlock(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pair := range [][2]string{{pipe, pipe}, {"/dev/null", pipe}} {
		ended := make(chan error, 1)
		go func() {
			_, err := security{policy: &policy.Policy{}, path: "x"}.tls(&policy.TLS{Cert: pair[0], Key: pair[1]})
			ended <- err
		}()
		select {
		case err := <-ended:
			if err == nil {
				t.Errorf("%q is accepted as a certificate and its key", pair)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%q blocks", pair)
		}
	}
}
