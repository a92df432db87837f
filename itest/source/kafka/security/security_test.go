//go:build unix

package security

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/kafka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func scram512(password string) []sasl.Mechanism {
	return []sasl.Mechanism{scram.Auth{User: user, Pass: password}.AsSha512Mechanism()}
}

// waitFailure waits until the consumer reports that it is not ready, with the given reason.
func (r *reader) waitFailure(why string) {
	r.t.Helper()
	said := ""
	r.waitUntil("it says "+why, func() bool {
		_, said = r.consumer.Ready()
		return strings.Contains(said, why)
	})
	if strings.Contains(said, password) || strings.Contains(said, "wrong horse") {
		r.t.Errorf("it shows the password: %s", said)
	}
}

// connectionCase is one way to connect a consumer to the broker.
type connectionCase struct {
	name, listener string
	change         func(*kafka.Config)
	// expectedError is the expected error, or empty if the connection must work.
	expectedError string
}

func connectionCases(ca *authority) []connectionCase {
	return []connectionCase{
		{"I0_SCRAM_SHA_512", byScram, func(c *kafka.Config) { c.SASL = scram512(password) }, ""},
		{"I0_SCRAM_SHA_512_over_TLS", bySecret, func(c *kafka.Config) { c.SASL, c.TLS = scram512(password), ca.clientConfig() }, ""},
		{"I0_PLAIN_over_TLS", bySecret, func(c *kafka.Config) {
			c.SASL, c.TLS = []sasl.Mechanism{plain.Auth{User: user, Pass: password}.AsMechanism()}, ca.clientConfig()
		}, ""},
		{"I0_TLS", encrypted, func(c *kafka.Config) { c.TLS = ca.clientConfig() }, ""},
		{"I0_TLS_with_a_certificate_of_the_client", certificate, func(c *kafka.Config) { c.TLS = ca.clientConfigWith("client") }, ""},
		{"a wrong password", byScram, func(c *kafka.Config) { c.SASL = scram512("wrong horse") }, "the brokers refused the user or its password; correct the SASL settings"},
		{"a wrong password over TLS", bySecret, func(c *kafka.Config) { c.SASL, c.TLS = scram512("wrong horse"), ca.clientConfig() }, "the brokers refused the user or its password"},
		{"a mechanism that the listener has not", byScram, func(c *kafka.Config) {
			c.SASL = []sasl.Mechanism{scram.Auth{User: user, Pass: password}.AsSha256Mechanism()}
		}, "SASL mechanism"},
		{"no credentials where SASL is required", byScram, func(*kafka.Config) {}, "none of the brokers"},
		{"an unknown authority", encrypted, func(c *kafka.Config) { c.TLS = &tls.Config{RootCAs: x509.NewCertPool()} }, "certificate"},
		{"no certificate where one is asked for", certificate, func(c *kafka.Config) { c.TLS = ca.clientConfig() }, "certificate"},
		{"no encryption where it is asked for", encrypted, func(*kafka.Config) {}, "that TLS and SASL match their listener"},
	}
}

func TestABrokerThatAsksWhoIsThere(t *testing.T) {
	s := newSite(t)
	for _, w := range connectionCases(s.ca) {
		t.Run(w.name, func(t *testing.T) {
			c := s.config(w.listener, s.topic())
			w.change(&c)
			r := s.read(t, c)
			if w.expectedError != "" {
				r.waitFailure(w.expectedError)
				return
			}
			r.waitFinished()
		})
	}
	t.Run("I0_what_the_user_may_not_is_said_and_works_when_it_may", func(t *testing.T) { mayNot(t, s) })
	t.Run("G3_dead_letters_that_may_not_be_written_wait_until_they_may", func(t *testing.T) { mayNotWrite(t, s) })
	t.Run("I0_secrets_come_from_the_environment_and_from_files", func(t *testing.T) { withPolicy(t, s) })
}

func mayNot(t *testing.T, s *site) {
	c := kafka.Config{Brokers: s.cluster.BrokersAt(byScram), Topics: []string{s.topic()}, Group: topics.Name(), SASL: scram512(password)}
	r := s.read(t, c)
	r.waitFailure("this user may not read topic " + c.Topics[0] + "; allow it READ and DESCRIBE")
	s.allow(kadm.NewACLs().Topics(c.Topics[0]), kadm.OpRead)
	r.waitFailure("this user may not use group " + c.Group + "; allow it READ on the group")
	s.allow(kadm.NewACLs().Groups(c.Group), kadm.OpRead)
	r.waitFinished()
}

func mayNotWrite(t *testing.T, s *site) {
	topic := s.topic()
	c := s.config(byScram, topic)
	c.SASL, c.DeadLetters = scram512(password), services.Topic(t, s.cluster.Brokers(), 1)
	s.allow(kadm.NewACLs().Topics(c.DeadLetters), kadm.OpDescribe)
	s.Produce(topics.Record(topic, 0, "letter", "bad"))
	r := s.read(t, c)
	r.waitFailure("this user may not write to the topic; allow it WRITE and DESCRIBE")
	if at := r.Committed(c.Group, topic)[0]; at > 3 {
		t.Errorf("the message at 3 has no dead letter, and the group is at %d", at)
	}
	s.allow(kadm.NewACLs().Topics(c.DeadLetters), kadm.OpWrite)
	r.waitFinished()
	if dead := r.Read(c.DeadLetters); len(dead) != 1 || topics.Header(dead[0], "id") != "letter" {
		t.Errorf("dead letters %v", dead)
	}
}
