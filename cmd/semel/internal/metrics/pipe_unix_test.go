//go:build unix

package metrics

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Opening a pipe without a writer blocks. A process that opened a pipe without a writer could neither start
// nor react to SIGTERM.
func TestPipesDoNotBlockTheStart(t *testing.T) {
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
	folder := t.TempDir()
	cert := filepath.Join(folder, "server")
	certify(t, cert, nil)
	for file, want := range map[string]string{pipe: "PEM", folder: "it is a directory", "/dev/zero": "it is longer than 16 MiB"} {
		for _, files := range []TLS{{Certificate: file, Key: cert + ".key"}, {Certificate: cert, Key: file}, {Certificate: cert, Key: cert + ".key", Clients: file}} {
			_, err := files.config()
			if err == nil || !strings.HasPrefix(err.Error(), "listen.tls") || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "there") {
				t.Errorf("%+v: %v", files, err)
			}
		}
	}
}
