package assembly

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"

	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// security reads the files that a Kafka source's tls and sasl name. Its errors
// are faults of the policy, and show nothing of what a file holds.
type security struct {
	policy *policy.Policy
	// at is the path of the source's kafka.
	at string
}

func (s security) fault(key string, err error, remedy string) error {
	return s.policy.Fault(s.at+"."+key, err.Error(), remedy)
}

// tls is nil where the policy names none.
func (s security) tls(t *policy.TLS) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CA != "" {
		pem, err := shape.ReadFile(t.CA)
		if err != nil {
			return nil, s.fault("tls.ca", err, "name a readable file")
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, s.fault("tls.ca", fmt.Errorf("%s holds no certificate", t.CA), "name a PEM file of authorities")
		}
	}
	if t.Cert != "" {
		own, err := shape.ReadPair(t.Cert, t.Key)
		if err != nil {
			return nil, s.fault("tls.cert", err, "name PEM files of a certificate and its key")
		}
		config.Certificates = []tls.Certificate{own}
	}
	return config, nil
}

// sasl is nil where the policy names none. A secret in a file is read at every
// login, so that it can be renewed, and once now, so that a wrong path is a
// fault at the start.
func (s security) sasl(k *policy.SASL) ([]sasl.Mechanism, error) {
	switch {
	case k == nil:
		return nil, nil
	case k.OAuthBearer != nil:
		token := secret{k.OAuthBearer.Token, k.OAuthBearer.TokenFile}
		return s.login("oauthbearer.token_file", token, oauth.Oauth(func(context.Context) (oauth.Auth, error) {
			text, err := token.read()
			return oauth.Auth{Token: text}, err
		}))
	case k.Plain != nil:
		password := secret{k.Plain.Password, k.Plain.PasswordFile}
		return s.login("plain.password_file", password, plain.Plain(func(context.Context) (plain.Auth, error) {
			text, err := password.read()
			return plain.Auth{User: k.Plain.User, Pass: text}, err
		}))
	case k.Scram256 != nil:
		password := secret{k.Scram256.Password, k.Scram256.PasswordFile}
		return s.login("scram_sha_256.password_file", password, scram.Sha256(scramLogin(k.Scram256.User, password)))
	default:
		password := secret{k.Scram512.Password, k.Scram512.PasswordFile}
		return s.login("scram_sha_512.password_file", password, scram.Sha512(scramLogin(k.Scram512.User, password)))
	}
}

func (s security) login(key string, with secret, m sasl.Mechanism) ([]sasl.Mechanism, error) {
	if _, err := with.read(); err != nil {
		return nil, s.fault("sasl."+key, err, "name a readable file with the secret on its only line")
	}
	return []sasl.Mechanism{m}, nil
}

func scramLogin(user string, password secret) func(context.Context) (scram.Auth, error) {
	return func(context.Context) (scram.Auth, error) {
		text, err := password.read()
		return scram.Auth{User: user, Pass: text}, err
	}
}

// secret is a text, or a file that holds it.
type secret struct{ text, file string }

func (s secret) read() (string, error) {
	if s.file == "" {
		return s.text, nil
	}
	text, err := shape.ReadFile(s.file)
	if err != nil {
		return "", err
	}
	line := strings.TrimRight(string(text), "\r\n")
	if line == "" || strings.ContainsAny(line, "\r\n") {
		return "", errors.New(s.file + " does not hold exactly one line")
	}
	return line, nil
}
