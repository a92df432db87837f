//go:build unix

// Package security reads from a real broker through listeners with encryption, authentication and
// authorization.
package security

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/itest/services/topics"
	"github.com/semel-go/semel/itest/worlds/workload"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/memstore"
	"github.com/twmb/franz-go/pkg/kadm"
)

// Listeners of the broker. A client of the plain listener has all permissions.
const (
	byScram     = "SCRAM"     // SASL without encryption
	bySecret    = "SECRET"    // SASL with encryption
	encrypted   = "ENCRYPTED" // encryption without authentication
	certificate = "MUTUAL"    // encryption, and the client needs a certificate
)

// The name and password of the user of the tests.
const (
	user     = "reader"
	password = "correct horse"
)

// site is a broker with all the listeners that the tests need.
type site struct {
	*topics.Cluster
	t       *testing.T
	cluster *services.Cluster
	ca      *authority
}

func newSite(t *testing.T) *site {
	t.Helper()
	ca := newAuthority(t)
	ca.issue("broker", 2)
	ca.issue("client", 3)
	login := []string{"sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN",
		"scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		fmt.Sprintf("plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required user_%s=%q;", user, password)}
	keys := []string{"ssl.keystore.type=PEM", "ssl.keystore.location=" + ca.path("broker.both.pem"),
		"ssl.truststore.type=PEM", "ssl.truststore.location=" + ca.path("ca.pem")}
	cluster := services.StartKafka(t, services.KafkaOptions{
		Listeners: []services.Listener{
			{Name: byScram, Protocol: "SASL_PLAINTEXT", Settings: login},
			{Name: bySecret, Protocol: "SASL_SSL", Settings: append(login, keys...)},
			{Name: encrypted, Protocol: "SSL", Settings: keys},
			{Name: certificate, Protocol: "SSL", Settings: append(keys, "ssl.client.auth=required")},
		},
		Settings: []string{"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer", "super.users=User:ANONYMOUS"},
	})
	s := &site{Cluster: topics.Open(t, cluster.Brokers()), t: t, cluster: cluster, ca: ca}
	must.Get(s.Admin.AlterUserSCRAMs(t.Context(), nil, []kadm.UpsertSCRAM{{User: user, Mechanism: kadm.ScramSha512, Iterations: 4096, Password: password}}))(t)
	return s
}

// topic creates a topic with three messages, which the user of the tests may read.
func (s *site) topic() string {
	s.t.Helper()
	topic := services.Topic(s.t, s.cluster.Brokers(), 1)
	for n := range 3 {
		s.Produce(topics.Record(topic, 0, fmt.Sprint(n), `{}`))
	}
	return topic
}

// allow gives a permission to principals. If acls has no names of topics or groups, the permission is for all names.
func (s *site) allow(acls *kadm.ACLBuilder, operation kadm.ACLOperation) {
	s.t.Helper()
	acls = acls.Allow("User:"+user, "User:CN=client").AllowHosts().Operations(operation).ResourcePatternType(kadm.ACLPatternLiteral)
	created, err := s.Admin.CreateACLs(s.t.Context(), acls)
	for _, c := range created {
		if err == nil {
			err = c.Err
		}
	}
	must.OK(s.t, err)
}

// config returns a configuration that reads a topic as the user of the tests.
func (s *site) config(listener, topic string) kafka.Config {
	s.t.Helper()
	c := kafka.Config{Brokers: s.cluster.BrokersAt(listener), Topics: []string{topic}, Group: topics.Name()}
	s.allow(kadm.NewACLs().Topics(topic), kadm.OpRead)
	s.allow(kadm.NewACLs().Groups(c.Group), kadm.OpRead)
	return c
}

// reader is a site with a running consumer.
type reader struct {
	*site
	config   kafka.Config
	consumer *consumer.Consumer[*memstore.Tx]
}

// read starts a consumer, which stops at the end of the test. A message whose body is "bad" becomes a dead letter.
func (s *site) read(t *testing.T, c kafka.Config) *reader {
	t.Helper()
	source := must.Get(kafka.New(c))(t)
	policy := workload.Config(source)
	if c.DeadLetters != "" {
		policy.Retry.OnExhausted = consumer.ActionDeadLetter
	}
	running, err := consumer.New(memstore.New(), func(_ context.Context, _ *memstore.Tx, m *semel.Message) error {
		if string(m.Body) == "bad" {
			return semel.Permanent(fmt.Errorf("it is bad"))
		}
		return nil
	}, policy)
	must.OK(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() {
		if err := running.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
	return &reader{&site{Cluster: topics.Open(t, s.cluster.Brokers()), t: t, cluster: s.cluster, ca: s.ca}, c, running}
}

func (r *reader) waitUntil(what string, condition func() bool) {
	r.t.Helper()
	if !services.Within(3*time.Minute, condition) {
		ready, why := r.consumer.Ready()
		r.t.Fatalf("after three minutes still not: %s; ready %v %s; %+v", what, ready, why, r.consumer.Counts())
	}
}

// waitFinished waits until each message is applied or is a dead letter, and the group has committed all offsets.
func (r *reader) waitFinished() {
	r.t.Helper()
	topic := r.config.Topics[0]
	r.waitUntil("the group is at the end", func() bool { return r.Committed(r.config.Group, topic)[0] == r.Ends(topic)[0] })
	if c := r.consumer.Counts(); c.Applied != 3 {
		r.t.Errorf("%+v", c)
	}
}
