package policy

import (
	"crypto/tls"
	"fmt"
)

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
