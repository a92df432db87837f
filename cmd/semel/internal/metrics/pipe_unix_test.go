//go:build unix

package metrics

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe that nobody writes would have a run wait for ever at its start, also through a SIGTERM.
func TestFilesThatArePipesAreNotWaitedFor(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Token(pipe); err == nil || !strings.Contains(err.Error(), "holds no token") {
		t.Errorf("a token: %v", err)
	}
	if _, err := Token("/dev/zero"); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a token without end: %v", err)
	}
	if _, err := (&TLS{Certificate: pipe, Key: pipe}).config(); err == nil || !strings.Contains(err.Error(), pipe) || !strings.Contains(err.Error(), "in PEM") {
		t.Errorf("a certificate: %v", err)
	}
}
