package policy

import (
	"fmt"
	"slices"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/kafka"
)

// kafkaRules checks the combinations of one Kafka source's keys.
type kafkaRules struct {
	rulePath
	kafka *Kafka
}

func (r kafkaRules) check() {
	r.checkSession()
	r.checkTopics()
	r.checkEncryption()
	r.checkSizes()
}

// checkSizes checks that a batch can contain the largest record.
func (r kafkaRules) checkSizes() {
	k := r.kafka
	r.refuseIf(r.isValid("max_record", "max_batch") && k.MaxBatch != 0 && k.MaxBatch < k.MaxRecord, "max_batch", "a batch with a single record of this size would stop its partition", "raise max_batch to max_record at least, or lower max_record")
}

// checkSession rejects session_timeout if the group protocol leaves the timeout to the brokers.
func (r kafkaRules) checkSession() {
	if !r.isValid("protocol", "session_timeout") || !r.kafka.NextGen {
		return
	}
	r.refuseIf(r.isSet("session_timeout"), "session_timeout", "with next_gen the session timeout is a setting of the brokers",
		"remove it, and set group.consumer.session.timeout.ms at the brokers")
	r.kafka.SessionTimeout = 0
}

func (r kafkaRules) checkTopics() {
	for i, topic := range r.kafka.Topics {
		r.refuseIf(slices.Contains(r.kafka.Topics[:i], topic) && r.isValid("topics"), fmt.Sprintf("topics[%d]", i), fmt.Sprintf("topic %q is already in the list", topic), "keep one of them")
	}
}

// missingHalf reports a certificate without a private key, or a private key without a certificate. The
// function returns "" if both files are set, or no file.
func (t *TLS) missingHalf() (key, reason, remedy string) {
	switch {
	case t == nil:
	case t.Cert != "" && t.Key == "":
		return "cert", "the certificate has no key", "add key: FILE, or remove cert"
	case t.Key != "" && t.Cert == "":
		return "key", "the key has no certificate", "add cert: FILE, or remove key"
	}
	return "", "", ""
}

func (r kafkaRules) checkEncryption() {
	t, s := r.kafka.TLS, r.kafka.SASL
	if !r.isValid("tls", "sasl") {
		return
	}
	if key, reason, remedy := t.missingHalf(); key != "" {
		r.refuse("tls."+key, reason, remedy)
	}
	r.warnIf(t == nil && s != nil && (s.Plain != nil || s.OAuthBearer != nil), "sasl", "the secret is sent in plain text, because tls is off", "write tls: true, or use scram_sha_512")
}

// longestRevocation is shorter than the group's rebalance timeout of 60 s.
const longestRevocation = 45 * time.Second

// checkKafka checks a consumer that reads a Kafka source.
func (r rules) checkKafka(s *Source) {
	if s == nil || s.Kafka == nil {
		return
	}
	c, at := r.consumer, "sources."+s.Name+".kafka"
	r.refuseIf(c.Drain > longestRevocation && r.isValid("drain"), "drain", fmt.Sprintf("a revoked partition also drains for this time, but the group waits at most 60s: %s is too long", legible.Span(c.Drain)),
		"write at most "+legible.Span(longestRevocation))
	if group := s.Kafka.GroupOf(c); s.Kafka.Start.Group == group && r.Sound(at+".start") && r.Sound(at+".group") {
		r.FaultAt(at+".start.group", fmt.Sprintf("consumer %s is in group %q itself, and continues there anyway", c.Name, group),
			"name the group whose offsets should be used, or write start: earliest")
	}
}

// checkGroups rejects consumers that share a consumer group, because each consumer would receive only some of
// the partitions.
func (p *Policy) checkGroups(d *shape.Decoder) {
	var before []*Consumer
	for _, c := range p.Consumers {
		s := p.Source(c.From)
		if s == nil || s.Kafka == nil || !d.Sound("sources."+s.Name+".kafka.group") || !d.Sound("sources."+s.Name+".kafka.brokers") {
			continue
		}
		i := slices.IndexFunc(before, func(b *Consumer) bool { return p.shareGroup(b, c) })
		before = append(before, c)
		if i < 0 {
			continue
		}
		d.FaultAt("consumers."+c.Name+".from", fmt.Sprintf("consumer %s is also in group %q, so each of the two would get only a part of the messages",
			before[i].Name, s.Kafka.GroupOf(c)), "remove group at the source, so that each consumer's name is its group, or give each a source with a group of its own")
	}
}

// shareGroup reports whether two consumers are in the same group of the same cluster.
func (p *Policy) shareGroup(a, b *Consumer) bool {
	ka, kb := p.Source(a.From).Kafka, p.Source(b.From).Kafka
	return oneCluster(ka, kb) && ka.GroupOf(a) == kb.GroupOf(b)
}

// checkDeadLetters checks that a consumer with the setting dead_letter has a destination for dead letters.
func (r rules) checkDeadLetters(s *Source) {
	if s == nil || !r.isValid("on_conflict", "on_bad_identity", "on_precondition", "on_expired", "retry", "on_filtered", "dead_letter", "version") {
		return
	}
	endings := r.deadLetterEndings()
	without, instead := "remove it; messages are then parked in the store", "write park: the message stays in the store"
	if r.usesKeyStore() { // nothing can be parked without Semel's tables
		without, instead = "remove it, and replace dead_letter by halt", "write halt, or skip for on_filtered"
	}
	switch place := r.consumer.DeadLetter; {
	case r.refuseIf(s.Kafka == nil && place != nil, "dead_letter", "this kind of source has no dead letters", without):
	case s.Kafka == nil:
		r.refuseAll(endings, "this kind of source has no dead letters", instead)
	case place == nil:
		r.refuseAll(endings, "the topic for dead letters is missing", "add dead_letter: {topic: …} at the consumer, or write park")
	case r.warnIf(len(endings) == 0, "dead_letter", "no key of this consumer is set to dead_letter", "remove it, or write retry: {on_exhausted: dead_letter}"):
	case r.refuseIf(slices.Contains(s.Kafka.Topics, place.Topic), "dead_letter.topic", fmt.Sprintf("source %s reads topic %q: dead letters would be read as messages", s.Name, place.Topic),
		"name another topic"):
	case r.warnIf(s.Kafka.matchesTopic(place.Topic), "dead_letter.topic", fmt.Sprintf("the topic_pattern of source %s matches it too; it is not read", s.Name), "name a topic that the pattern does not match"):
	}
}

// matchesTopic reports whether the source's topic pattern matches the complete name of a topic.
func (k *Kafka) matchesTopic(topic string) bool {
	pattern, err := kafka.CompilePattern(k.TopicPattern)
	return err == nil && k.TopicPattern != "" && pattern.MatchString(topic)
}

// checkLetters rejects a dead-letter topic that another consumer reads as its source. If two topics were
// dead-letter topics of each other's consumers, a failing message could circulate between the topics forever.
func (p *Policy) checkLetters(d *shape.Decoder) {
	for _, writes := range p.Consumers {
		from := p.Source(writes.From)
		if writes.DeadLetter == nil || from == nil || from.Kafka == nil || !d.Sound("consumers."+writes.Name+".dead_letter") {
			continue
		}
		topic := writes.DeadLetter.Topic
		for _, reads := range p.Consumers {
			s := p.Source(reads.From)
			own := reads.DeadLetter != nil && reads.DeadLetter.Topic == topic
			if own || s == nil || s.Kafka == nil || !s.Kafka.matchesTopic(topic) || !oneCluster(from.Kafka, s.Kafka) {
				continue
			}
			d.FaultAt("consumers."+writes.Name+".dead_letter.topic", fmt.Sprintf("the topic_pattern of source %s matches it, and consumer %s would read the dead letters as messages", s.Name, reads.Name),
				"name a topic that the pattern does not match, or write topics at that source")
		}
	}
}

// oneCluster reports whether two sources have a broker in common.
func oneCluster(a, b *Kafka) bool {
	return slices.ContainsFunc(a.Brokers, func(broker string) bool { return slices.Contains(b.Brokers, broker) })
}

// actions returns the actions of the consumer by policy key.
func (c *Consumer) actions() map[string]*consumer.Action {
	ends := map[string]*consumer.Action{"on_conflict": &c.OnConflict, "on_bad_identity": &c.OnBadIdentity, "on_precondition": &c.OnPrecondition,
		"on_expired": &c.OnExpired, "retry.on_exhausted": &c.Retry.OnExhausted}
	if c.Version != nil {
		ends["version.missing"] = &c.Version.Missing
	}
	return ends
}

// deadLetterEndings returns the keys that are set to dead_letter.
func (r rules) deadLetterEndings() (keys []string) {
	for key, then := range r.consumer.actions() {
		if *then == consumer.ActionDeadLetter {
			keys = append(keys, key)
		}
	}
	if r.consumer.OnFiltered == consumer.OnFilteredDeadLetter {
		keys = append(keys, "on_filtered")
	}
	return keys
}

func (r rules) refuseAll(keys []string, reason, remedy string) {
	for _, key := range keys {
		r.refuse(key, reason, remedy)
	}
}

// checkPublish checks a handler that publishes messages to Kafka.
func (r rules) checkPublish(p *Publish, from *Source) {
	const at = "handler.kafka."
	switch {
	case r.refuseIf(p.Topic == "" && p.TopicHeader == "", "handler.kafka", "the topic is missing", "add topic: NAME, or topic_header and topics"):
	case r.refuseIf(p.TopicHeader != "" && len(p.Topics) == 0, at+"topic_header", "producers could publish to any topic with it", "add topics: […] with the allowed topics"):
	case r.refuseIf(p.TopicHeader == "" && len(p.Topics) > 0, at+"topics", "this list is for topic_header, which is not set", "write topic: NAME, or add topic_header"):
	}
	for _, key := range []string{"topic", "topics"} {
		for _, topic := range p.destinations(key) {
			r.checkLoop(at+key, topic, p, from)
		}
	}
	kafkaRules{rulePath{r.Decoder, r.path + ".handler.kafka"}, &Kafka{TLS: p.TLS, SASL: p.SASL}}.checkEncryption()
}

// checkLoop rejects publishing to a topic that the consumer itself reads.
func (r rules) checkLoop(key, topic string, p *Publish, from *Source) {
	if from == nil || from.Kafka == nil || !oneCluster(&Kafka{Brokers: p.Brokers}, from.Kafka) {
		return
	}
	r.refuseIf(slices.Contains(from.Kafka.Topics, topic) || from.Kafka.matchesTopic(topic), key, fmt.Sprintf("source %s reads topic %q: published records would be read as messages", from.Name, topic), "name another topic")
}

// Kafka is a source of topics. Each consumer of the source reads the topics separately, in its own group.
type Kafka struct {
	// Brokers are the addresses of brokers, as host:port. Either Topics or TopicPattern is set.
	Brokers, Topics []string
	TopicPattern    string
	// Group is the consumer group. If Group is empty, GroupOf uses the consumer's name.
	Group string
	// Instance is the id for static group membership; empty for dynamic membership.
	Instance string
	// NextGen selects the group protocol that brokers control (KIP-848).
	NextGen bool
	// SessionTimeout is 0 with NextGen, because the brokers then set the timeout.
	SessionTimeout  time.Duration
	Start           kafka.Start
	CommitInterval  time.Duration
	OnLostRecords   kafka.LostRecords
	ReadUncommitted bool
	Format          kafka.Format
	// The limits are in bytes. Except MaxRecord, a limit is 0 if the policy does not set the limit.
	MaxRecord, MaxBatch, MaxFetch, MaxPartitionFetch int64
	// ClientID and Rack are sent to the brokers. Rack may be empty.
	ClientID, Rack string
	// TLS and SASL are nil if the policy sets none.
	TLS  *TLS
	SASL *SASL
}

// GroupOf returns the consumer group of c for the source k.
func (k *Kafka) GroupOf(c *Consumer) string {
	group := c.Name
	if k.Group != "" {
		group = k.Group
	}
	if c.In != nil && c.In.Building {
		return admin.GenerationName(group, c.In.Number)
	}
	return group
}

// TLS configures encrypted connections. The paths of the files are absolute, or empty if the policy sets no
// file.
type TLS struct {
	// CA replaces the certificate authorities of the system. Cert and Key are the certificate and private
	// key of this side of the connection.
	CA, Cert, Key string
	// ServerName is the name that the broker's certificate must have; empty for the broker's host name.
	ServerName string

	off bool
}

// SASL is the authentication at the brokers. Exactly one field of SASL is set.
type SASL struct {
	Plain, Scram256, Scram512 *Login
	OAuthBearer               *Bearer
}

// Login is a user with a password. PasswordFile is the file with the password if Password is empty.
type Login struct{ User, Password, PasswordFile string }

// Bearer is a token. TokenFile is the file with the token if Token is empty.
type Bearer struct{ Token, TokenFile string }

// DeadLetter is the destination of dead letters.
type DeadLetter struct{ Topic string }
