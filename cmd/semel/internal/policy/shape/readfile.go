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

// longestFile is the maximum size of a file in bytes. The limit longestFile stops reads from a device without
// an end.
const longestFile = 16 << 20

// errDirectory means that the path is a directory.
var errDirectory = errors.New("it is a directory")

// ReadFile reads a policy, or a file that a policy names. ReadFile never waits for a writer: a named pipe
// without a writer reads as empty. os.ReadFile would wait forever, even after SIGTERM. ReadFile reads a pipe
// that a shell has opened (`--config <(…)`) to the end.
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

// ReadPair reads a certificate and its private key with ReadFile. Errors name the files but never contain
// the files' contents.
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
