package assembly

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/kafka"
)

// kafkaPolicy is a policy with one Kafka source. Test cases insert further keys of the source after the key topics.
const kafkaPolicy = `version: 1
stores: {shop: {sqlite: {path: shop.db}}}
sources:
  payments:
    kafka:
      brokers: ["a:1", "b:2"]
      TOPICS
      KEYS
consumers:
  billing: {from: payments, store: shop, identity: {id: id}, CONSUMER handler: {sql: {statements: [select 1]}}}
`

// loadKafkaConfig returns the Kafka configuration for the policy's only consumer.
func loadKafkaConfig(t *testing.T, folder, consumer string, keys ...string) (kafka.Config, error) {
	t.Helper()
	topics := "topics: [payments, refunds]"
	if slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, "topic_pattern:") }) {
		topics = ""
	}
	text := strings.NewReplacer("TOPICS", topics, "KEYS", strings.Join(keys, "\n      "), "CONSUMER", consumer).Replace(kafkaPolicy)
	env := func(name string) (string, bool) { return "hunter2", name == "SECRET" }
	p, faults := policy.Parse(filepath.Join(folder, "semel.yaml"), []byte(text), env)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	a := &Assembly{policy: p, options: Options{Logger: slog.New(slog.DiscardHandler)}}
	return a.kafkaConfig(p.Consumers[0], p.Sources[0], newLanes(a.options.Logger, time.Now))
}

// comparableConfig returns a configuration without the fields that cannot be compared.
func comparableConfig(t *testing.T, c kafka.Config) kafka.Config {
	t.Helper()
	if c.Logger == nil || c.Observe == nil {
		t.Error("the client's warnings and lanes have no receiver")
	}
	c.Logger, c.Observe = nil, nil
	return c
}

func TestThePolicySetsTheConfigurationOfTheAdapter(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	usual := kafka.Config{Brokers: []string{"a:1", "b:2"}, Topics: []string{"payments", "refunds"}, Group: "billing",
		SessionTimeout: 45 * time.Second, RevokeTimeout: 20 * time.Second, CommitInterval: time.Second, MaxRecord: 16 << 20, ClientID: "semel"}
	for name, c := range map[string]struct {
		consumer string
		keys     []string
		want     func(*kafka.Config)
	}{
		"the defaults":          {want: func(*kafka.Config) {}},
		"the group":             {keys: []string{"group: g", "instance: i-1", "session_timeout: 10s"}, want: func(c *kafka.Config) { c.Group, c.Instance, c.SessionTimeout = "g", "i-1", 10*time.Second }},
		"the brokers' protocol": {keys: []string{"protocol: next_gen"}, want: func(c *kafka.Config) { c.NextGen, c.SessionTimeout = true, 0 }},
		"the records":           {keys: []string{"isolation: read_uncommitted", "format: cloudevents", "max_record: 1MiB"}, want: func(c *kafka.Config) { c.ReadUncommitted, c.Format, c.MaxRecord = true, kafka.CloudEvents, 1<<20 }},
		"the commits":           {keys: []string{"commit_interval: 5s"}, want: func(c *kafka.Config) { c.CommitInterval = 5 * time.Second }},
		"a pattern of topics":   {keys: []string{`topic_pattern: "orders.*"`}, want: func(c *kafka.Config) { c.Topics, c.TopicPattern = nil, "orders.*" }},
		"its names":             {keys: []string{"client_id: shop-1", "rack: north"}, want: func(c *kafka.Config) { c.ClientID, c.Rack = "shop-1", "north" }},
		"what is fetched": {keys: []string{"max_batch: 64MiB", "max_fetch: 8MiB", "max_partition_fetch: 2MiB"},
			want: func(c *kafka.Config) { c.MaxBatch, c.MaxFetch, c.MaxPartitionFetch = 64<<20, 8<<20, 2<<20 }},
		"what is lost":         {keys: []string{"on_lost_records: go_on"}, want: func(c *kafka.Config) { c.OnLostRecords = kafka.GoOn }},
		"from now on":          {keys: []string{"start: now"}, want: func(c *kafka.Config) { c.Start.Now = true }},
		"from a time on":       {keys: []string{"start: {at: 2026-01-01T00:00:00Z}"}, want: func(c *kafka.Config) { c.Start.At = at }},
		"from a group on":      {keys: []string{"start: {group: old}"}, want: func(c *kafka.Config) { c.Start.Group = "old" }},
		"the consumer's drain": {consumer: "drain: 5s, timeout: 5s,", want: func(c *kafka.Config) { c.RevokeTimeout = 5 * time.Second }},
		"the dead letters":     {consumer: "dead_letter: {topic: dead}, retry: {on_exhausted: dead_letter},", want: func(c *kafka.Config) { c.DeadLetters = "dead" }},
	} {
		t.Run(name, func(t *testing.T) {
			want := usual
			c.want(&want)
			got, err := loadKafkaConfig(t, t.TempDir(), c.consumer, c.keys...)
			if got = comparableConfig(t, got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%+v, %v, want %+v", got, err, want)
			}
		})
	}
}

func TestAPolicyCanSetEveryFieldOfTheConfiguration(t *testing.T) {
	folder := t.TempDir()
	certificate(t, folder)
	config, err := loadKafkaConfig(t, folder, "dead_letter: {topic: dead}, retry: {on_exhausted: dead_letter},", "group: g", "instance: i", "start: now", "on_lost_records: go_on", "rack: r", "max_batch: 64MiB", "max_fetch: 8MiB", "max_partition_fetch: 2MiB",
		"isolation: read_uncommitted", "format: cloudevents", "tls: {ca: ca.pem}", `sasl: {plain: {user: u, password: "${SECRET}"}}`)
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(config)
	for i := range v.NumField() {
		// NextGen excludes SessionTimeout, and TopicPattern excludes Topics; the test above covers SessionTimeout
		// and Topics. The field Options exists only for Go programs.
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "NextGen" && name != "TopicPattern" && name != "Options" {
			t.Errorf("nothing in a policy sets %s", name)
		}
	}
}

// certificate writes ca.pem, cert.pem and key.pem of a self-signed certificate.
func certificate(t *testing.T, folder string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, folder, "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(t, folder, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	write(t, folder, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

func write(t *testing.T, folder, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestConnectionsAreEncryptedAsThePolicySays(t *testing.T) {
	folder := t.TempDir()
	certificate(t, folder)
	config, err := loadKafkaConfig(t, folder, "", "tls: {ca: ca.pem, cert: cert.pem, key: key.pem, server_name: kafka.example}")
	if err != nil {
		t.Fatal(err)
	}
	if c := config.TLS; c == nil || c.RootCAs == nil || len(c.Certificates) != 1 || c.ServerName != "kafka.example" || c.InsecureSkipVerify {
		t.Errorf("%+v", config.TLS)
	}
	if config, err = loadKafkaConfig(t, folder, "", "tls: true"); err != nil || config.TLS == nil || config.TLS.RootCAs != nil {
		t.Errorf("with the system's authorities: %+v %v", config.TLS, err)
	}
	if config, err = loadKafkaConfig(t, folder, "", "tls: false"); err != nil || config.TLS != nil {
		t.Errorf("without TLS: %+v %v", config.TLS, err)
	}
}

func TestAConsumerLogsInAsThePolicySays(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "secret", []byte("from a file\n"))
	for keys, want := range map[string][]string{
		`sasl: {plain: {user: u, password: "${SECRET}"}}`:         {"PLAIN", "\x00u\x00hunter2"},
		`sasl: {plain: {user: u, password_file: secret}}`:         {"PLAIN", "\x00u\x00from a file"},
		`sasl: {scram_sha_256: {user: u, password: "${SECRET}"}}`: {"SCRAM-SHA-256", "n=u"},
		`sasl: {scram_sha_512: {user: u, password_file: secret}}`: {"SCRAM-SHA-512", "n=u"},
		`sasl: {oauthbearer: {token: "${SECRET}"}}`:               {"OAUTHBEARER", "Bearer hunter2"},
		`sasl: {oauthbearer: {token_file: secret}}`:               {"OAUTHBEARER", "Bearer from a file"},
	} {
		config, err := loadKafkaConfig(t, folder, "", "tls: true", keys)
		if err != nil || len(config.SASL) != 1 {
			t.Fatalf("%s: %v", keys, err)
		}
		m := config.SASL[0]
		if first := hello(t, config); m.Name() != want[0] || !strings.Contains(first, want[1]) {
			t.Errorf("%s: %s says %q", keys, m.Name(), first)
		}
	}
}

func hello(t *testing.T, c kafka.Config) string {
	t.Helper()
	_, first, err := c.SASL[0].Authenticate(context.Background(), "a:1")
	if err != nil {
		t.Fatal(err)
	}
	return string(first)
}

func TestASecretInAFileIsReadAtEveryLogin(t *testing.T) {
	folder := t.TempDir()
	write(t, folder, "token", []byte("first"))
	config, err := loadKafkaConfig(t, folder, "", "tls: true", "sasl: {oauthbearer: {token_file: token}}")
	if err != nil {
		t.Fatal(err)
	}
	before := hello(t, config)
	write(t, folder, "token", []byte("second\r\n"))
	if after := hello(t, config); !strings.Contains(before, "Bearer first\x01") || !strings.Contains(after, "Bearer second\x01") {
		t.Errorf("%q, then %q", before, after)
	}
}

func TestUnreadableFilesOfTLSAndSASLAreFaultsWithAPosition(t *testing.T) {
	folder := t.TempDir()
	certificate(t, folder)
	write(t, folder, "empty", nil)
	write(t, folder, "two", []byte("hunter2\nand more\n"))
	for keys, want := range map[string]string{
		"tls: {ca: none}":                 "8:17: sources.payments.kafka.tls.ca: ",
		"tls: {ca: empty}":                "empty holds no certificate; name a PEM file of certificate authorities",
		"tls: {cert: ca.pem, key: empty}": "8:19: sources.payments.kafka.tls.cert: ",
		"sasl: {scram_sha_256: {user: u, password_file: none}}":         "sources.payments.kafka.sasl.scram_sha_256.password_file: ",
		"sasl: {scram_sha_512: {user: u, password_file: empty}}":        "empty does not hold exactly one line; name a readable file",
		"tls: true\n      sasl: {oauthbearer: {token_file: two}}":       "9:40: sources.payments.kafka.sasl.oauthbearer.token_file: ",
		"tls: true\n      sasl: {plain: {user: u, password_file: two}}": "sasl.plain.password_file: ",
	} {
		_, err := loadKafkaConfig(t, folder, "", keys)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", keys, err, want)
		}
	}
}

// watch returns lanes with a clock and a log that the test controls.
func watch() (*lanes, *time.Time, *bytes.Buffer) {
	now, log := time.Unix(1000, 0), &bytes.Buffer{}
	return newLanes(slog.New(slog.NewTextHandler(log, nil)), func() time.Time { return now }), &now, log
}

func TestTheTerminalShowsHowFarAConsumerIsBehind(t *testing.T) {
	l, now, _ := watch()
	if got := l.line(); got != "no partitions" {
		t.Error(got)
	}
	l.observe([]kafka.LaneState{{Topic: "b", Partition: 0, Committed: -1, Delivered: -1, End: -1}})
	if got := l.line(); got != "behind ?  partitions 1" {
		t.Error(got)
	}
	l.observe([]kafka.LaneState{
		{Topic: "a", Partition: 0, Committed: 10, Delivered: 30, End: 110, Unsettled: 20, Oldest: now.Add(-3 * time.Second), Paused: true},
		{Topic: "a", Partition: 1, Committed: -1, Delivered: 5, End: 9, Unsettled: 2, Oldest: now.Add(-time.Second)},
		{Topic: "b", Partition: 0, Committed: -1, Delivered: -1, End: -1},
		{Topic: "b", Partition: 1, Committed: 7, Delivered: 7, End: 8, HeldUp: true, Fault: errors.New("lost")},
	})
	if got := l.line(); got != "behind 107  oldest 3s  partitions 4  paused 1  held up 1  standing 1" {
		t.Error(got)
	}
	l.observe([]kafka.LaneState{{Topic: "a", Partition: 0, Lost: true}, {Topic: "b", Partition: 1, Committed: 8, Delivered: 8, End: 8}})
	if got := l.line(); got != "behind 6  oldest 1s  partitions 3" {
		t.Error(got)
	}
}

func TestLagAloneIsNotReported(t *testing.T) {
	t.Run("trap_35_lag_of_control_records_at_the_end_is_no_fault", func(t *testing.T) {
		l, now, log := watch()
		for range 10 {
			l.observe([]kafka.LaneState{{Topic: "a", Committed: 7, Delivered: 7, End: 8}})
			*now = now.Add(time.Minute)
		}
		if log.Len() > 0 {
			t.Error(log)
		}
	})
}

func TestAnUnsettledMessageIsLoggedOnceAMinute(t *testing.T) {
	l, now, log := watch()
	state := kafka.LaneState{Topic: "a", Partition: 3, Committed: 7, Delivered: 9, End: 90, Unsettled: 2, Oldest: *now}
	for range 59 {
		l.observe([]kafka.LaneState{state})
		*now = now.Add(time.Second)
	}
	if log.Len() > 0 {
		t.Errorf("before a minute has passed: %s", log)
	}
	for range 100 {
		*now = now.Add(time.Second)
		l.observe([]kafka.LaneState{state})
	}
	if n := strings.Count(log.String(), "a partition makes no progress"); n != 2 || !strings.Contains(log.String(), "partition=3 for=1m0s behind=83 unsettled=2") {
		t.Errorf("%d reports in 159 s: %s", n, log)
	}
	log.Reset()
	state.Lost = true
	*now = now.Add(time.Hour)
	l.observe([]kafka.LaneState{state})
	if log.Len() > 0 {
		t.Errorf("a message of a revoked partition was reported: %s", log)
	}
}

func TestTheLongestWaitIsLogged(t *testing.T) {
	l, now, log := watch()
	since := *now
	*now = now.Add(2 * unsettledAge)
	l.observe([]kafka.LaneState{
		{Topic: "a", Partition: 1, Committed: 7, Delivered: 9, End: 9, Unsettled: 2, Oldest: since.Add(time.Second)},
		{Topic: "a", Partition: 2, Committed: 7, Delivered: 9, End: 9, Unsettled: 2, Oldest: since},
		{Topic: "a", Partition: 4, Committed: 7, Delivered: 9, End: 9, Unsettled: 2, Oldest: *now},
	})
	for _, want := range []string{"its oldest message is not settled", "partition=2", "for=2m0s", "unsettled=2", "partitions_like_it=2"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is missing in %s", want, log)
		}
	}
}
