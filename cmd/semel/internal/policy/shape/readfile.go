package shape

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// longestFile is far beyond what a person writes. A device may never end.
const longestFile = 16 << 20

// errDirectory is that a folder is named where a file is needed.
var errDirectory = errors.New("it is a directory")

// ReadFile reads a file that a policy names, or the policy itself. It waits for
// nobody: of a named pipe that no process writes it reads nothing, where opening
// it the usual way would wait for ever, also through a SIGTERM. A pipe that a
// shell has opened (`--config <(…)`) is read to its end.
func ReadFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errDirectory}
	}
	data, err := io.ReadAll(io.LimitReader(f, longestFile+1))
	if err == nil && len(data) > longestFile {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("it is longer than %d MiB", longestFile>>20)}
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// ReadPair reads a certificate and its key as ReadFile does, waiting for nobody. Its errors
// name the file, and show nothing of what it holds.
func ReadPair(certificate, key string) (tls.Certificate, error) {
	shown, err := ReadFile(certificate)
	if err != nil {
		return tls.Certificate{}, err
	}
	secret, err := ReadFile(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	pair, err := tls.X509KeyPair(shown, secret)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s and %s: %w", certificate, key, err)
	}
	return pair, nil
}
