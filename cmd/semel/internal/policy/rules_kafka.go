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

// kafkaRules check the combinations of one source's keys.
type kafkaRules struct {
	*shape.Decoder
	kafka *Kafka
	// at is the path of the source's kafka.
	at string
}

func (r kafkaRules) ok(keys ...string) bool {
	for _, key := range keys {
		if !r.Sound(r.at + "." + key) {
			return false
		}
	}
	return true
}

func (r kafkaRules) check() {
	r.session()
	r.topics()
	r.encryption()
	r.sizes()
}

// sizes checks that a batch can contain the largest record.
func (r kafkaRules) sizes() {
	k := r.kafka
	if r.ok("max_record", "max_batch") && k.MaxBatch != 0 && k.MaxBatch < k.MaxRecord {
		r.FaultAt(r.at+".max_batch", "a batch with a single record of this size would stop its partition", "raise max_batch to max_record at least, or lower max_record")
	}
}

// session rejects session_timeout if the brokers decide about it.
func (r kafkaRules) session() {
	if !r.ok("protocol", "session_timeout") || !r.kafka.NextGen {
		return
	}
	if r.Given(r.at + ".session_timeout") {
		r.FaultAt(r.at+".session_timeout", "with next_gen the session timeout is a setting of the brokers",
			"remove it, and set group.consumer.session.timeout.ms at the brokers")
	}
	r.kafka.SessionTimeout = 0
}

func (r kafkaRules) topics() {
	for i, topic := range r.kafka.Topics {
		if at := fmt.Sprintf("%s.topics[%d]", r.at, i); slices.Contains(r.kafka.Topics[:i], topic) && r.ok("topics") {
			r.FaultAt(at, fmt.Sprintf("topic %q is already in the list", topic), "keep one of them")
		}
	}
}

// half returns the key of a certificate without a key, or of a key without a certificate, with reason and remedy;
// empty if both or none are set.
func (t *TLS) half() (key, reason, remedy string) {
	switch {
	case t == nil:
	case t.Cert != "" && t.Key == "":
		return "cert", "the certificate has no key", "add key: FILE, or remove cert"
	case t.Key != "" && t.Cert == "":
		return "key", "the key has no certificate", "add cert: FILE, or remove key"
	}
	return "", "", ""
}

func (r kafkaRules) encryption() {
	t, s := r.kafka.TLS, r.kafka.SASL
	if !r.ok("tls", "sasl") {
		return
	}
	if key, reason, remedy := t.half(); key != "" {
		r.FaultAt(r.at+".tls."+key, reason, remedy)
	}
	if t == nil && s != nil && (s.Plain != nil || s.OAuthBearer != nil) {
		r.WarnAt(r.at+".sasl", "the secret is sent in plain text, because tls is off", "write tls: true, or use scram_sha_512")
	}
}

// longestRevocation is shorter than the group's rebalance timeout of 60 s.
const longestRevocation = 45 * time.Second

// kafka checks a consumer of a Kafka source.
func (r rules) kafka(s *Source) {
	if s == nil || s.Kafka == nil {
		return
	}
	c, at := r.consumer, "sources."+s.Name+".kafka"
	if c.Drain > longestRevocation && r.ok("drain") {
		r.refuse("drain", fmt.Sprintf("a revoked partition also drains for this time, but the group waits at most 60s: %s is too long", legible.Span(c.Drain)),
			"write at most "+legible.Span(longestRevocation))
	}
	if group := s.Kafka.GroupOf(c); s.Kafka.Start.Group == group && r.Sound(at+".start") && r.Sound(at+".group") {
		r.FaultAt(at+".start.group", fmt.Sprintf("consumer %s is in group %q itself, and continues there anyway", c.Name, group),
			"name the group whose offsets should be used, or write start: earliest")
	}
}

// checkGroups reports consumers in the same group, because each would get only a part of the partitions.
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

// deadLetters checks that messages that end with dead_letter have a destination.
func (r rules) deadLetters(s *Source) {
	if s == nil || !r.ok("on_conflict", "on_bad_identity", "on_precondition", "retry", "on_filtered", "dead_letter", "version") {
		return
	}
	endings := r.deadLetterEndings()
	without, instead := "remove it; messages are then parked in the store", "write park: the message stays in the store"
	if r.keyed() { // where nothing can be parked
		without, instead = "remove it, and replace dead_letter by halt", "write halt, or skip for on_filtered"
	}
	switch place := r.consumer.DeadLetter; {
	case s.Kafka == nil && place != nil:
		r.refuse("dead_letter", "this kind of source has no dead letters", without)
	case s.Kafka == nil:
		r.refuseAll(endings, "this kind of source has no dead letters", instead)
	case place == nil:
		r.refuseAll(endings, "the topic for dead letters is missing", "add dead_letter: {topic: …} at the consumer, or write park")
	case len(endings) == 0:
		r.warn("dead_letter", "no key of this consumer is set to dead_letter", "remove it, or write retry: {on_exhausted: dead_letter}")
	case slices.Contains(s.Kafka.Topics, place.Topic):
		r.refuse("dead_letter.topic", fmt.Sprintf("source %s reads topic %q: dead letters would be read as messages", s.Name, place.Topic),
			"name another topic")
	case s.Kafka.matches(place.Topic):
		r.warn("dead_letter.topic", fmt.Sprintf("the topic_pattern of source %s matches it too; it is not read", s.Name), "name a topic that the pattern does not match")
	}
}

// matches reports whether the pattern of topics matches the complete name.
func (k *Kafka) matches(topic string) bool {
	pattern, err := kafka.CompilePattern(k.TopicPattern)
	return err == nil && k.TopicPattern != "" && pattern.MatchString(topic)
}

// checkLetters rejects dead letters that another consumer reads as messages: they could become its dead letters, and
// circulate forever.
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
			if own || s == nil || s.Kafka == nil || !s.Kafka.matches(topic) || !oneCluster(from.Kafka, s.Kafka) {
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

// deadLetterEndings returns the keys that are set to dead_letter.
func (r rules) deadLetterEndings() []string {
	c := r.consumer
	var keys []string
	for _, e := range []struct {
		Key  string
		then consumer.Action
	}{{"on_conflict", c.OnConflict}, {"on_bad_identity", c.OnBadIdentity}, {"on_precondition", c.OnPrecondition}, {"retry.on_exhausted", c.Retry.OnExhausted}} {
		if e.then == consumer.ActionDeadLetter {
			keys = append(keys, e.Key)
		}
	}
	if c.Version != nil && c.Version.Missing == consumer.ActionDeadLetter {
		keys = append(keys, "version.missing")
	}
	if c.OnFiltered == consumer.OnFilteredDeadLetter {
		keys = append(keys, "on_filtered")
	}
	return keys
}

func (r rules) refuseAll(keys []string, reason, remedy string) {
	for _, key := range keys {
		r.refuse(key, reason, remedy)
	}
}

// publishes checks a handler that publishes to Kafka.
func (r rules) publishes(p *Publish, from *Source) {
	const at = "handler.kafka."
	switch {
	case p.Topic == "" && p.TopicHeader == "":
		r.refuse("handler.kafka", "the topic is missing", "add topic: NAME, or topic_header and topics")
	case p.TopicHeader != "" && len(p.Topics) == 0:
		r.refuse(at+"topic_header", "producers could publish to any topic with it", "add topics: […] with the allowed topics")
	case p.TopicHeader == "" && len(p.Topics) > 0:
		r.refuse(at+"topics", "this list is for topic_header, which is not set", "write topic: NAME, or add topic_header")
	}
	for _, key := range []string{"topic", "topics"} {
		for _, topic := range p.destinations(key) {
			r.comesBack(at+key, topic, p, from)
		}
	}
	kafkaRules{r.Decoder, &Kafka{TLS: p.TLS, SASL: p.SASL}, r.at + ".handler.kafka"}.encryption()
}

// comesBack rejects publishing to a topic that the consumer itself reads.
func (r rules) comesBack(key, topic string, p *Publish, from *Source) {
	if from == nil || from.Kafka == nil || !oneCluster(&Kafka{Brokers: p.Brokers}, from.Kafka) {
		return
	}
	if slices.Contains(from.Kafka.Topics, topic) || from.Kafka.matches(topic) {
		r.refuse(key, fmt.Sprintf("source %s reads topic %q: published records would be read as messages", from.Name, topic), "name another topic")
	}
}

// Kafka is a source of topics. Each consumer of the source reads it separately, in its own group.
type Kafka struct {
	// Brokers are host:port. Either Topics is not empty, or TopicPattern is set.
	Brokers, Topics []string
	TopicPattern    string
	// Group is empty for the consumer's name; see GroupOf.
	Group string
	// Instance makes the members static if it is not empty.
	Instance string
	// NextGen uses the group protocol of the brokers.
	NextGen bool
	// SessionTimeout is 0 with NextGen, where the brokers' setting applies.
	SessionTimeout  time.Duration
	Start           kafka.Start
	CommitInterval  time.Duration
	OnLostRecords   kafka.LostRecords
	ReadUncommitted bool
	Format          kafka.Format
	// The sizes are in bytes. All except MaxRecord are 0 if the policy does not set them.
	MaxRecord, MaxBatch, MaxFetch, MaxPartitionFetch int64
	// ClientID and Rack are sent to brokers. Rack may be empty.
	ClientID, Rack string
	// TLS and SASL are nil if the policy has none.
	TLS  *TLS
	SASL *SASL
}

// GroupOf returns the consumer group in which c reads k.
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

// TLS configures encrypted connections. Paths are absolute, or empty if the policy has none.
type TLS struct {
	// CA replaces the system's certificate authorities. Cert and Key are the own certificate and its key.
	CA, Cert, Key string
	// ServerName is the expected name in the broker's certificate, instead of its host.
	ServerName string

	off bool
}

// SASL is the authentication. Exactly one of the four is set.
type SASL struct {
	Plain, Scram256, Scram512 *Login
	OAuthBearer               *Bearer
}

// Login is a user with a password, or with a file that contains it.
type Login struct{ User, Password, PasswordFile string }

// Bearer is a token, or a file that contains it.
type Bearer struct{ Token, TokenFile string }

// DeadLetter is the destination of dead letters.
type DeadLetter struct{ Topic string }
