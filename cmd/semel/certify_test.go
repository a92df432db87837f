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

// certify NAME [BY] writes NAME.pem and NAME.key, a certificate for this machine and its key, signed by the
// certificate BY or by itself.
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

// secured PATH FILE [CLIENT] requests PATH from a run that serves $PORT over HTTPS with a certificate signed by
// authority.pem, optionally with a client certificate, and writes status and response to FILE.
func secured(ts *testscript.TestScript, _ bool, args []string) {
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
