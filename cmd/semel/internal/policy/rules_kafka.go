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

// kafkaRules judge the combinations of one source's keys.
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

// sizes: a batch holds a record at least.
func (r kafkaRules) sizes() {
	k := r.kafka
	if r.ok("max_record", "max_batch") && k.MaxBatch != 0 && k.MaxBatch < k.MaxRecord {
		r.FaultAt(r.at+".max_batch", "a batch with one record of max_record would stop its partition", "raise max_batch to max_record at least, or lower max_record")
	}
}

// session: a setting that plays no part must not look as if it did.
func (r kafkaRules) session() {
	if !r.ok("protocol", "session_timeout") || !r.kafka.NextGen {
		return
	}
	if r.Given(r.at + ".session_timeout") {
		r.FaultAt(r.at+".session_timeout", "with next_gen the brokers say after how long a process counts as silent",
			"remove it, and set group.consumer.session.timeout.ms at the brokers")
	}
	r.kafka.SessionTimeout = 0
}

func (r kafkaRules) topics() {
	for i, topic := range r.kafka.Topics {
		if at := fmt.Sprintf("%s.topics[%d]", r.at, i); slices.Contains(r.kafka.Topics[:i], topic) && r.ok("topics") {
			r.FaultAt(at, fmt.Sprintf("topic %q stands in the list already", topic), "keep one of them")
		}
	}
}

// half is the key of a certificate without its key, or of a key without its certificate, and
// what to do; empty if both are there, or none.
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
		r.WarnAt(r.at+".sasl", "the secret goes over the network readable, because tls is off", "write tls: true, or use scram_sha_512")
	}
}

// longestRevocation leaves room in a group's rebalance time-out of 60 s.
const longestRevocation = 45 * time.Second

// kafka judges a consumer of a Kafka source.
func (r rules) kafka(s *Source) {
	if s == nil || s.Kafka == nil {
		return
	}
	c, at := r.consumer, "sources."+s.Name+".kafka"
	if c.Drain > longestRevocation && r.ok("drain") {
		r.refuse("drain", fmt.Sprintf("a partition that is taken away drains for as long, and the group waits 60s at most: %s is too long", legible.Span(c.Drain)),
			"write at most "+legible.Span(longestRevocation))
	}
	if group := s.Kafka.GroupOf(c); s.Kafka.Start.Group == group && r.Sound(at+".start") && r.Sound(at+".group") {
		r.FaultAt(at+".start.group", fmt.Sprintf("consumer %s is in group %q itself, where it goes on anyway", c.Name, group),
			"name the group whose offsets are to be taken over, or write start: earliest")
	}
}

// checkGroups: of two consumers in one group each gets a part of the partitions.
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
		d.FaultAt("consumers."+c.Name+".from", fmt.Sprintf("consumer %s reads in group %q already, and each of the two would get only a part of the messages",
			before[i].Name, s.Kafka.GroupOf(c)), "remove group at the source, so that each consumer's name is its group, or give each a source with a group of its own")
	}
}

// shareGroup reports whether two consumers are in one group of one cluster.
func (p *Policy) shareGroup(a, b *Consumer) bool {
	ka, kb := p.Source(a.From).Kafka, p.Source(b.From).Kafka
	return oneCluster(ka, kb) && ka.GroupOf(a) == kb.GroupOf(b)
}

// deadLetters: where an ending says dead_letter, there is a place for them.
func (r rules) deadLetters(s *Source) {
	if s == nil || !r.ok("on_conflict", "on_bad_identity", "on_precondition", "retry", "on_filtered", "dead_letter", "version") {
		return
	}
	endings := r.deadLetterEndings()
	without, instead := "remove it, and let messages be parked in the store", "write park: the message is kept in the store"
	if r.keyed() { // where nothing can be parked
		without, instead = "remove it, and write halt where an ending is dead_letter", "write halt, or skip for on_filtered"
	}
	switch place := r.consumer.DeadLetter; {
	case s.Kafka == nil && place != nil:
		r.refuse("dead_letter", "a source of this kind keeps no dead letters", without)
	case s.Kafka == nil:
		r.refuseAll(endings, "a source of this kind keeps no dead letters", instead)
	case place == nil:
		r.refuseAll(endings, "nothing says where dead letters go", "add dead_letter: {topic: …} at the consumer, or write park")
	case len(endings) == 0:
		r.warn("dead_letter", "no ending of this consumer is dead_letter", "remove it, or write retry: {on_exhausted: dead_letter}")
	case slices.Contains(s.Kafka.Topics, place.Topic):
		r.refuse("dead_letter.topic", fmt.Sprintf("source %s reads topic %q: a dead letter would come back as a message", s.Name, place.Topic),
			"name another topic")
	case s.Kafka.matches(place.Topic):
		r.warn("dead_letter.topic", fmt.Sprintf("the topic_pattern of source %s matches it, too; it is not read", s.Name), "name a topic that the pattern does not match")
	}
}

// matches reports whether the pattern of topics matches a name, the whole of it.
func (k *Kafka) matches(topic string) bool {
	pattern, err := kafka.CompilePattern(k.TopicPattern)
	return err == nil && k.TopicPattern != "" && pattern.MatchString(topic)
}

// checkLetters: dead letters that another consumer reads as messages can end as
// its dead letters, and go round without end.
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

// oneCluster reports whether two sources are of one cluster, as far as the names
// of the brokers tell.
func oneCluster(a, b *Kafka) bool {
	return slices.ContainsFunc(a.Brokers, func(broker string) bool { return slices.Contains(b.Brokers, broker) })
}

// deadLetterEndings are the keys of the endings that say so.
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

// publishes judges a handler that publishes to Kafka.
func (r rules) publishes(p *Publish, from *Source) {
	const at = "handler.kafka."
	switch {
	case p.Topic == "" && p.TopicHeader == "":
		r.refuse("handler.kafka", "nothing says which topic is published to", "add topic: NAME, or topic_header and topics")
	case p.TopicHeader != "" && len(p.Topics) == 0:
		r.refuse(at+"topic_header", "whoever writes a message could write to any topic with it", "add topics: […], those that it may name")
	case p.TopicHeader == "" && len(p.Topics) > 0:
		r.refuse(at+"topics", "they are those that topic_header may name, and there is none", "write topic: NAME, or add topic_header")
	}
	for _, key := range []string{"topic", "topics"} {
		for _, topic := range p.destinations(key) {
			r.comesBack(at+key, topic, p, from)
		}
	}
	kafkaRules{r.Decoder, &Kafka{TLS: p.TLS, SASL: p.SASL}, r.at + ".handler.kafka"}.encryption()
}

// comesBack refuses to publish what the consumer itself would read.
func (r rules) comesBack(key, topic string, p *Publish, from *Source) {
	if from == nil || from.Kafka == nil || !oneCluster(&Kafka{Brokers: p.Brokers}, from.Kafka) {
		return
	}
	if slices.Contains(from.Kafka.Topics, topic) || from.Kafka.matches(topic) {
		r.refuse(key, fmt.Sprintf("source %s reads topic %q: what is published would come back as a message", from.Name, topic), "name another topic")
	}
}

// Kafka is a source of topics. What it says is of each consumer that reads it;
// each reads for itself, in a group of its own.
type Kafka struct {
	// Brokers are host:port. Either Topics has one at least, or TopicPattern
	// is set.
	Brokers, Topics []string
	TopicPattern    string
	// Group is empty for the consumer's name; see GroupOf.
	Group string
	// Instance makes the members static, or is empty.
	Instance string
	// NextGen joins with the brokers' own protocol.
	NextGen bool
	// SessionTimeout is 0 with NextGen, where the brokers' counts.
	SessionTimeout  time.Duration
	Start           kafka.Start
	CommitInterval  time.Duration
	OnLostRecords   kafka.LostRecords
	ReadUncommitted bool
	Format          kafka.Format
	// MaxRecord is in bytes, and so are the others, which are 0 where the
	// policy names none.
	MaxRecord, MaxBatch, MaxFetch, MaxPartitionFetch int64
	// ClientID and Rack are what brokers are told; Rack may be empty.
	ClientID, Rack string
	// TLS and SASL are nil where the policy names none.
	TLS  *TLS
	SASL *SASL
}

// GroupOf is the consumer group in which c reads k.
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

// TLS says how connections are encrypted. The paths are resolved, and empty
// where the policy names none.
type TLS struct {
	// CA are the authorities in the place of the system's; Cert and Key are of
	// this side.
	CA, Cert, Key string
	// ServerName is expected in the place of the broker's host.
	ServerName string

	off bool
}

// SASL says who this side is. One of the four is set.
type SASL struct {
	Plain, Scram256, Scram512 *Login
	OAuthBearer               *Bearer
}

// Login is a user with a password, which stands here or in a file.
type Login struct{ User, Password, PasswordFile string }

// Bearer is a token, which stands here or in a file.
type Bearer struct{ Token, TokenFile string }

// DeadLetter says where messages go that end as dead letters.
type DeadLetter struct{ Topic string }
