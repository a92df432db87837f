package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The script command "certify NAME [BY]" writes a certificate for this machine to NAME.pem and its private
// key to NAME.key. The certificate BY signs the new certificate. Without BY, the new certificate signs
// itself.
func certify(ts *testscript.TestScript, _ bool, args []string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: len(args) == 1, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}}
	parent, signer := of, any(key)
	if len(args) > 1 {
		by, err := tls.LoadX509KeyPair(ts.MkAbs(args[1]+".pem"), ts.MkAbs(args[1]+".key"))
		ts.Check(err)
		parent, signer = by.Leaf, by.PrivateKey
	}
	raw, err := x509.CreateCertificate(rand.Reader, of, parent, &key.PublicKey, signer)
	ts.Check(err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
}

// The script command "secured PATH FILE [CLIENT]" requests PATH over HTTPS from the process that listens on
// $PORT, and writes status and response to FILE. authority.pem must have signed the server's certificate.
// CLIENT is a client certificate.
func requestHTTPS(ts *testscript.TestScript, _ bool, args []string) {
	trusted := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	trusted.RootCAs.AppendCertsFromPEM([]byte(ts.ReadFile("authority.pem")))
	if len(args) > 2 {
		pair, err := tls.LoadX509KeyPair(ts.MkAbs(args[2]+".pem"), ts.MkAbs(args[2]+".key"))
		ts.Check(err)
		trusted.Certificates = []tls.Certificate{pair}
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: trusted, DisableKeepAlives: true}}
	said := ""
	response, err := client.Get("https://127.0.0.1:" + ts.Getenv("PORT") + args[0])
	if err != nil {
		said = err.Error()
	} else {
		body, err := io.ReadAll(response.Body)
		ts.Check(err)
		ts.Check(response.Body.Close())
		said = fmt.Sprintf("%d\n%s", response.StatusCode, body)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(said), 0o600))
}
