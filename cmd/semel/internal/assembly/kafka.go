package assembly

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// monitoredTopics is a Kafka source that reports its consumer's lag.
type monitoredTopics struct {
	*kafka.Source
	*lanes
}

func (a *Assembly) kafkaSource(c *policy.Consumer, s *policy.Source) (source.Source, error) {
	lanes := newLanes(a.options.Logger.With(slog.String("consumer", c.Name), slog.String("source", s.Name)), time.Now)
	config, err := a.kafkaConfig(c, s, lanes)
	if err != nil {
		return nil, err
	}
	src, err := kafka.New(config)
	if err != nil {
		return nil, err
	}
	return &monitoredTopics{src, lanes}, nil
}

// kafkaConfig returns the Kafka configuration for one consumer. Each consumer reads the source separately.
// When a partition is revoked, messages in progress have as much time as during a shutdown.
func (a *Assembly) kafkaConfig(c *policy.Consumer, s *policy.Source, lanes *lanes) (kafka.Config, error) {
	k := s.Kafka
	config := kafka.Config{
		Brokers: k.Brokers, Topics: k.Topics, TopicPattern: k.TopicPattern,
		Group: k.GroupOf(c), Instance: k.Instance, NextGen: k.NextGen,
		SessionTimeout: k.SessionTimeout, RevokeTimeout: c.Drain,
		Start: k.Start, CommitInterval: k.CommitInterval, OnLostRecords: k.OnLostRecords, ReadUncommitted: k.ReadUncommitted, Format: k.Format, MaxRecord: int(k.MaxRecord),
		MaxBatch: int(k.MaxBatch), MaxFetch: int(k.MaxFetch), MaxPartitionFetch: int(k.MaxPartitionFetch), ClientID: k.ClientID, Rack: k.Rack,
		Logger: a.options.Logger.With(slog.String("consumer", c.Name)), Observe: lanes.observe,
	}
	if c.Rebuilds() { // a rebuild reads all records, in a group of its own
		config.Start, config.Instance = kafka.Start{}, ""
	}
	if c.DeadLetter != nil {
		config.DeadLetters = c.DeadLetter.Topic
	}
	security := security{policy: a.policy, path: "sources." + s.Name + ".kafka"}
	var err error
	if config.TLS, err = security.tls(k.TLS); err != nil {
		return kafka.Config{}, err
	}
	config.SASL, err = security.sasl(k.SASL)
	return config, err
}

// security reads the files that the keys tls and sasl of a Kafka source name. An error of this function is a
// fault of the policy, and does not contain the content of a file.
type security struct {
	policy *policy.Policy
	// path is the path of the source's key kafka in the policy.
	path string
}

func (s security) fault(key string, err error, remedy string) error {
	return s.policy.Fault(s.path+"."+key, err.Error(), remedy)
}

// tls returns the TLS settings, or nil if the policy sets none.
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
			return nil, s.fault("tls.ca", fmt.Errorf("%s holds no certificate", t.CA), "name a PEM file of certificate authorities")
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

// sasl returns the SASL mechanisms, or nil if the policy sets none. A secret in a file is read again for
// each login, so that operators can rotate the secret. sasl also reads the file immediately, so that the
// start fails if the path is wrong.
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

// secret is a text, or the name of a file with the text.
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

// Topics returns a reader of topics in the cluster of the consumer's source. The reader does not join a
// consumer group. The caller must close the reader.
func (a *Assembly) Topics(c *policy.Consumer, topics ...string) (*kafka.Range, error) {
	s := a.policy.Source(c.From)
	if s == nil || s.Kafka == nil {
		return nil, fmt.Errorf("consumer %s reads no topics of Kafka", c.Name)
	}
	config, err := a.kafkaConfig(c, s, newLanes(a.options.Logger, time.Now))
	if err != nil {
		return nil, err
	}
	config.Topics, config.TopicPattern = topics, ""
	return kafka.NewRange(config)
}
