package policy

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/kafka"
	"go.yaml.in/yaml/v4"
)

// The table of a Kafka source, and of a consumer's dead letters.

func kafkaShape() object[Kafka] {
	var all []field[Kafka]
	all = append(all, clusterKeys()...)
	all = append(all, groupKeys()...)
	all = append(all, recordKeys()...)
	all = append(all, securityKeys(func(k *Kafka) **TLS { return &k.TLS }, func(k *Kafka) **SASL { return &k.SASL })...)
	return object[Kafka]{oneOf: []string{"topics", "topic_pattern"}, unsaid: "what is to be read is not said", fields: all}
}

func clusterKeys() []field[Kafka] {
	return []field[Kafka]{
		key(meta{name: "brokers", required: true, doc: "The brokers to ask first, `host:port` each. One text may hold several, with commas between, as variables of the environment do."},
			brokersShape{}, func(k *Kafka) *[]string { return &k.Brokers }),
		key(meta{name: "topics", doc: "The topics to read. All must exist."},
			list[string]{item: topicName(), single: true}, func(k *Kafka) *[]string { return &k.Topics }),
		key(meta{name: "topic_pattern", doc: "Instead of `topics`, a regular expression (RE2) that must match the whole name of a topic. One that is created later is found within 10 seconds and read from its beginning, also if no process ran when it was created. Topics of the brokers' own (`__…`) and the one for dead letters are never read."},
			word{what: "a regular expression", check: badPattern}, func(k *Kafka) *string { return &k.TopicPattern }),
		key(meta{name: "client_id", def: "semel", doc: "What brokers log, and what their quotas go by."},
			word{what: "a name"}, func(k *Kafka) *string { return &k.ClientID }),
		key(meta{name: "rack", doc: "Where this process runs, as `broker.rack` says it at the brokers. Partitions are then read from a replica there, if the brokers have a `replica.selector.class` that allows it."},
			word{what: "a name"}, func(k *Kafka) *string { return &k.Rack }),
	}
}

func groupKeys() []field[Kafka] {
	return []field[Kafka]{
		key(meta{name: "group", doc: "The consumer group; the default is the consumer's name. Two consumers in one group would each get half, so each needs its own."},
			word{what: "the name of a group"}, func(k *Kafka) *string { return &k.Group }),
		key(meta{name: "instance", doc: "Makes the member static (`group.instance.id`): a restart within the session time-out moves no partition. Different in each process of a group, as `\"${HOSTNAME}\"`."},
			word{what: "a text that differs in each process"}, func(k *Kafka) *string { return &k.Instance }),
		key(meta{name: "protocol", def: "cooperative", doc: "How partitions are shared out: `cooperative` by the members, moving only what must move; `next_gen` by the brokers (KIP-848), which need Kafka 4.0."},
			choice[bool]{options: []option[bool]{{word: "cooperative"}, {word: "next_gen", value: true}}}, func(k *Kafka) *bool { return &k.NextGen }),
		key(meta{name: "session_timeout", def: "45s", doc: "After how long a silent process loses its partitions. With `next_gen` the brokers' setting counts."},
			span{least: 6 * time.Second, most: 30 * time.Minute}, func(k *Kafka) *time.Duration { return &k.SessionTimeout }),
		key(meta{name: "commit_interval", def: "1s", doc: "How often the group is told how far it is. A partition that moves is committed at once, and so is the end of a run. After a crash the messages since the last commit come again, as duplicates."},
			span{least: 10 * time.Millisecond, most: 10 * time.Minute}, func(k *Kafka) *time.Duration { return &k.CommitInterval }),
		key(meta{name: "on_lost_records", def: "halt", doc: "What follows when records were deleted before they were read: `halt`, the partition stands still and says so until a person sets the group's offset, and the others go on; `go_on`, the loss is logged with its offsets and the partition goes on behind it."},
			choice[kafka.LostRecords]{options: []option[kafka.LostRecords]{{word: "halt", value: kafka.Halt}, {word: "go_on", value: kafka.GoOn}}}, func(k *Kafka) *kafka.LostRecords { return &k.OnLostRecords }),
		key(meta{name: "start", def: "earliest", doc: "Where a topic begins when the group first joins it: `earliest`; `now`, behind what is there; a time; or another group's offsets. It counts once; partitions and topics that come later are read from their beginning."},
			startShape(), func(k *Kafka) *kafka.Start { return &k.Start }),
	}
}

func recordKeys() []field[Kafka] {
	return []field[Kafka]{
		key(meta{name: "isolation", def: "read_committed", doc: "Whether records of open and aborted transactions are left out, or read as `read_uncommitted`."},
			choice[bool]{options: []option[bool]{{word: "read_committed"}, {word: "read_uncommitted", value: true}}}, func(k *Kafka) *bool { return &k.ReadUncommitted }),
		key(meta{name: "format", def: "records", doc: "What a record becomes: `records` takes key, headers and value as they are, and finds CloudEvents in binary mode by their `ce_` headers; `cloudevents` also reads the structured mode, by its content type."},
			choice[kafka.Format]{options: []option[kafka.Format]{{word: "records", value: kafka.Records}, {word: "cloudevents", value: kafka.CloudEvents}}},
			func(k *Kafka) *kafka.Format { return &k.Format }),
		key(meta{name: "max_record", def: "16MiB", doc: "The longest value that is read as a message. A longer one is set aside as `too large`. At most the `max_body` of the consumers that read it."},
			size{least: 64 << 10, most: 90 << 20}, func(k *Kafka) *int64 { return &k.MaxRecord }),
		key(meta{name: "max_batch", doc: "The most that a batch of records may be when it is decompressed; 32 MiB, or what a record of `max_record` needs, unless it is set. A larger one stops its partition, and the log says how to go on."},
			size{least: 64 << 10, most: 1 << 30}, func(k *Kafka) *int64 { return &k.MaxBatch }),
		key(meta{name: "max_fetch", doc: "The most that one broker sends at once, as it is compressed. Unless it is set, all brokers share a quarter of `max_unacked`, with 1 to 16 MiB each."},
			size{least: 1 << 10, most: 90 << 20}, func(k *Kafka) *int64 { return &k.MaxFetch }),
		key(meta{name: "max_partition_fetch", doc: "The same of one partition; 1 MiB, or `max_fetch` if that is less, unless it is set."},
			size{least: 1 << 10, most: 90 << 20}, func(k *Kafka) *int64 { return &k.MaxPartitionFetch }),
	}
}

// securityKeys are of whoever connects to brokers.
func securityKeys[T any](tls func(*T) **TLS, sasl func(*T) **SASL) []field[T] {
	return []field[T]{
		key(meta{name: "tls", def: "false", doc: "Encrypts every connection: `true` with the system's authorities, or a mapping."},
			encryption{tlsShape()}, tls),
		key(meta{name: "sasl", doc: "Who this side is. Secrets come from the environment or from a file; one that stands in the policy is refused."},
			pointer[SASL]{saslShape()}, sasl),
	}
}

// startShape is a word, a time or a group.
func startShape() object[kafka.Start] {
	return object[kafka.Start]{
		short: choice[kafka.Start]{options: []option[kafka.Start]{
			{word: "earliest"}, {word: "now", value: kafka.Start{Now: true}},
			{word: "latest", reason: "latest would also skip what a new partition got before the group saw it",
				remedy: "write now: it skips only what is there when the group first joins"}}},
		oneOf: []string{"at", "group"},
		fields: []field[kafka.Start]{
			key(meta{name: "at", doc: "The first record with this time or a later one: the producer's, or the broker's where the topic says `LogAppendTime`."},
				instant{}, func(s *kafka.Start) *time.Time { return &s.At }),
			key(meta{name: "group", doc: "The committed offsets of this group. A partition for which it has none begins at its beginning."},
				word{what: "the name of a group"}, func(s *kafka.Start) *string { return &s.Group }),
		}}
}

func tlsShape() object[TLS] {
	return object[TLS]{
		short: encrypted{},
		fields: append(tlsFiles(), key(meta{name: "server_name", doc: "The name expected in the brokers' certificates, where it is not the host."},
			word{what: "a host name"}, func(t *TLS) *string { return &t.ServerName }))}
}

// tlsFiles are the keys of whom this side trusts, and of who it is.
func tlsFiles() []field[TLS] {
	file := path{word: word{what: "a path"}}
	return []field[TLS]{
		key(meta{name: "ca", doc: "A PEM file of authorities, in the place of the system's."}, file, func(t *TLS) *string { return &t.CA }),
		key(meta{name: "cert", doc: "A PEM file with this side's certificate. Needs `key`."}, file, func(t *TLS) *string { return &t.Cert }),
		key(meta{name: "key", doc: "A PEM file with its key."}, file, func(t *TLS) *string { return &t.Key }),
	}
}

func saslShape() object[SASL] {
	return object[SASL]{
		oneOf: []string{"plain", "scram_sha_256", "scram_sha_512", "oauthbearer"},
		fields: []field[SASL]{
			key(meta{name: "plain", doc: "User and password, readable on the way unless `tls` is set."}, pointer[Login]{loginShape()}, func(s *SASL) **Login { return &s.Plain }),
			key(meta{name: "scram_sha_256", doc: "User and password, proven without sending it."}, pointer[Login]{loginShape()}, func(s *SASL) **Login { return &s.Scram256 }),
			key(meta{name: "scram_sha_512", doc: "The same with the longer hash."}, pointer[Login]{loginShape()}, func(s *SASL) **Login { return &s.Scram512 }),
			key(meta{name: "oauthbearer", doc: "A bearer token."}, pointer[Bearer]{bearerShape()}, func(s *SASL) **Bearer { return &s.OAuthBearer }),
		}}
}

func loginShape() object[Login] {
	return object[Login]{
		oneOf: []string{"password", "password_file"},
		fields: []field[Login]{
			key(meta{name: "user", required: true, doc: "The user."}, word{what: "the name of a user"}, func(l *Login) *string { return &l.User }),
			key(meta{name: "password", doc: "The password, as `${NAME}` of the environment."}, secret{}, func(l *Login) *string { return &l.Password }),
			key(meta{name: "password_file", doc: "A file with the password on its only line, read at every login."},
				path{word: word{what: "a path"}}, func(l *Login) *string { return &l.PasswordFile }),
		}}
}

func bearerShape() object[Bearer] {
	return object[Bearer]{
		oneOf: []string{"token", "token_file"},
		fields: []field[Bearer]{
			key(meta{name: "token", doc: "The token, as `${NAME}` of the environment."}, secret{}, func(b *Bearer) *string { return &b.Token }),
			key(meta{name: "token_file", doc: "A file with the token on its only line, read at every login, so that it can be renewed."},
				path{word: word{what: "a path"}}, func(b *Bearer) *string { return &b.TokenFile }),
		}}
}

func deadLetterShape() object[DeadLetter] {
	return object[DeadLetter]{fields: []field[DeadLetter]{
		key(meta{name: "topic", required: true, doc: "A topic of the source's cluster. It must exist, and is none of `topics`; where `topic_pattern` matches it, it is not read."},
			topicName(), func(l *DeadLetter) *string { return &l.Topic }),
	}}
}

const topicPattern = `^[A-Za-z0-9._-]{1,249}$`

func topicName() word {
	return word{what: "the name of a topic", pattern: topicPattern, check: badTopic}
}

func badTopic(s string) (reason, remedy string) {
	strange := func(r rune) bool {
		return !strings.ContainsRune("._-", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if len(s) > 249 || s == "." || s == ".." || strings.ContainsFunc(s, strange) {
		return "this cannot be the name of a topic", "use letters, digits, '.', '_' and '-', at most 249 of them"
	}
	return "", ""
}

func badPattern(s string) (reason, remedy string) {
	if _, err := kafka.CompilePattern(s); err != nil {
		return "this is no regular expression: " + err.Error(), `write one in the syntax of RE2, as "orders\\..*"`
	}
	return "", ""
}

// brokersShape is a list of texts, each of one broker or of several.
type brokersShape struct{ leaf }

func (brokersShape) list() list[string] {
	return list[string]{item: word{what: "a broker as host:port", check: badBrokers}, single: true}
}

func (s brokersShape) read(d *decoder, p place) ([]string, bool) {
	texts, ok := s.list().read(d, p)
	var all []string
	for _, text := range texts {
		for broker := range strings.SplitSeq(text, ",") {
			all = append(all, strings.TrimSpace(broker))
		}
	}
	return all, ok
}

func (s brokersShape) words() string { return s.list().words() }

func (s brokersShape) schema() schema { return s.list().schema() }

func badBrokers(text string) (reason, remedy string) {
	for broker := range strings.SplitSeq(text, ",") {
		host, port, err := net.SplitHostPort(strings.TrimSpace(broker))
		n, notNumber := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || notNumber != nil || n == 0 {
			return "this is no broker", `write "host:port", as "127.0.0.1:9092"`
		}
	}
	return "", ""
}

// encryption is a mapping, or true or false.
type encryption struct{ object[TLS] }

func (s encryption) read(d *decoder, p place) (*TLS, bool) {
	v, ok := s.object.read(d, p)
	if v.off {
		return nil, ok
	}
	return &v, ok
}

// encrypted is encryption without options.
type encrypted struct{ boolean }

func (s encrypted) read(d *decoder, p place) (TLS, bool) {
	on, ok := s.boolean.read(d, p)
	return TLS{off: !on}, ok
}

// instant is a moment with its zone.
type instant struct{ leaf }

func (s instant) read(d *decoder, p place) (time.Time, bool) {
	text, ok := d.text(&p, s.words())
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		d.fault(p, p.shown(text)+" is no time", "write "+s.words())
	}
	return at, err == nil
}

func (instant) words() string { return "a time with its zone, as 2026-01-01T00:00:00Z" }

func (instant) schema() schema {
	return orVariable(schema{"type": "string", "pattern": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`})
}

// instantOrDate is a moment with its zone, or a date, which begins at midnight UTC.
type instantOrDate struct{ leaf }

func (s instantOrDate) read(d *decoder, p place) (time.Time, bool) {
	text, ok := d.text(&p, s.words())
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	switch {
	case err != nil:
		d.fault(p, p.shown(text)+" is no time", "write "+s.words())
	case at.Year() < firstYear:
		d.fault(p, fmt.Sprintf("%s is before %d", p.shown(text), firstYear), fmt.Sprintf("write %d-01-01 for all time", firstYear))
		return at, false
	}
	return at, err == nil
}

// firstYear keeps the zero time, which means that no time was set, from being written.
const firstYear = 1970

func (instantOrDate) words() string {
	return "a date, as 2026-01-01, or a time with its zone, as 2026-01-01T00:00:00Z"
}

func (instantOrDate) schema() schema {
	return orVariable(schema{"type": "string", "pattern": `^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))?$`})
}

// secret is a text that may not stand in the file, and is not shown.
type secret struct {
	leaf
	// noFile: none can be named in its place.
	noFile bool
}

// secretPattern says of a text what isReference does.
const secretPattern = `^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`

func (s secret) read(d *decoder, p place) (string, bool) {
	n := p.value()
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.wrongType(p, s.words())
		return "", false
	}
	if !isReference(n.Value) {
		remedy := "write " + s.words()
		if !s.noFile {
			remedy += ", or name a file that holds it"
		}
		d.fault(p, "a secret stands in the policy", remedy)
		return "", false
	}
	text, ok := d.text(&p, s.words())
	if ok && text == "" {
		d.fault(p, "the environment variable is empty", "set it to the secret")
		return "", false
	}
	return text, ok
}

// isReference reports whether text is a variable of the environment, without a
// default, and nothing beside it.
func isReference(text string) bool {
	name, opened := strings.CutPrefix(text, "${")
	name, closed := strings.CutSuffix(name, "}")
	return opened && closed && isVariable(name)
}

func (secret) words() string { return "${NAME} alone, a variable of the environment" }

func (secret) schema() schema { return schema{"type": "string", "pattern": secretPattern} }
