//go:build unix

package hookserver

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Reading a pipe without a writer would block the start of a run forever, even after SIGTERM.
func TestCertificateFilesDoNotBlockAndAreLimited(t *testing.T) {
	folder := t.TempDir()
	cert, key := certify(t, folder, 1)
	pipe := filepath.Join(folder, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	huge := filepath.Join(folder, "huge")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<30); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{pipe: "failed to find any PEM data", folder: "it is a directory", huge: "it is longer than 16 MiB"} {
		for _, o := range []Options{{Cert: file, Key: key}, {Cert: cert, Key: file}} {
			o.Address, o.Connections, o.Logger = "127.0.0.1:0", 1, slog.New(slog.DiscardHandler)
			s, err := Open(o)
			if err == nil {
				s.Close()
				t.Errorf("%s is accepted as a certificate or a key", file)
				continue
			}
			for _, part := range []string{"tls: ", file, want, "write a certificate and its key there, in PEM"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %v", part, err)
				}
			}
		}
	}
}
