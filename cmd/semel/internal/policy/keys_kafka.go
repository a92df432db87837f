package policy

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/kafka"
	"go.yaml.in/yaml/v4"
)

// This file has the tables of Kafka sources and dead letters.

func kafkaShape() shape.Object[Kafka] {
	var all []shape.Field[Kafka]
	all = append(all, clusterKeys()...)
	all = append(all, groupKeys()...)
	all = append(all, recordKeys()...)
	all = append(all, securityKeys(func(k *Kafka) **TLS { return &k.TLS }, func(k *Kafka) **SASL { return &k.SASL })...)
	return shape.Object[Kafka]{OneOf: []string{"topics", "topic_pattern"}, Unsaid: "the topics are missing", Fields: all}
}

func clusterKeys() []shape.Field[Kafka] {
	return []shape.Field[Kafka]{
		shape.Key(shape.Meta{Name: "brokers", Required: true, Doc: "The bootstrap brokers as `host:port`. One text may contain several, separated by commas."},
			brokersShape{}, func(k *Kafka) *[]string { return &k.Brokers }),
		shape.Key(shape.Meta{Name: "topics", Doc: "The topics to read. All must exist."},
			shape.List[string]{Item: topicName(), Single: true}, func(k *Kafka) *[]string { return &k.Topics }),
		shape.Key(shape.Meta{Name: "topic_pattern", Doc: "Instead of `topics`, a regular expression (RE2) that must match the whole name of a topic. Topics created later are found within 10 seconds and read from their beginning, even if no process ran when they were created. Internal topics (`__…`) and the dead-letter topic are never read."},
			shape.Word{What: "a regular expression", Check: badPattern}, func(k *Kafka) *string { return &k.TopicPattern }),
		shape.Key(shape.Meta{Name: "client_id", Def: "semel", Doc: "The client id for the logs and quotas of brokers."},
			shape.Word{What: "a name"}, func(k *Kafka) *string { return &k.ClientID }),
		shape.Key(shape.Meta{Name: "rack", Doc: "The rack of this process, as in the brokers' `broker.rack`. Partitions are read from a replica in this rack if the brokers' `replica.selector.class` allows it."},
			shape.Word{What: "a name"}, func(k *Kafka) *string { return &k.Rack }),
	}
}

func groupKeys() []shape.Field[Kafka] {
	return []shape.Field[Kafka]{
		shape.Key(shape.Meta{Name: "group", Doc: "The consumer group; default: the name of the consumer. Every consumer needs its own group, because consumers in one group share the messages."},
			shape.Word{What: "the name of a group"}, func(k *Kafka) *string { return &k.Group }),
		shape.Key(shape.Meta{Name: "instance", Doc: "Makes the member static (`group.instance.id`): a restart within the session timeout moves no partition. It must differ in each process of a group, such as `\"${HOSTNAME}\"`."},
			shape.Word{What: "a text that differs in each process"}, func(k *Kafka) *string { return &k.Instance }),
		shape.Key(shape.Meta{Name: "protocol", Def: "cooperative", Doc: "How partitions are assigned: `cooperative` by the members, moving few partitions; `next_gen` by the brokers (KIP-848, Kafka 4.0)."},
			shape.Choice[bool]{Options: []shape.Option[bool]{{Word: "cooperative"}, {Word: "next_gen", Value: true}}}, func(k *Kafka) *bool { return &k.NextGen }),
		shape.Key(shape.Meta{Name: "session_timeout", Def: "45s", Doc: "The time after which a silent process loses its partitions. With `next_gen`, the brokers' setting applies."},
			shape.Span{Least: 6 * time.Second, Most: 30 * time.Minute}, func(k *Kafka) *time.Duration { return &k.SessionTimeout }),
		shape.Key(shape.Meta{Name: "commit_interval", Def: "1s", Doc: "The interval of offset commits. Offsets are also committed when a partition moves and at the end of a run. After a crash, messages since the last commit are delivered again as duplicates."},
			shape.Span{Least: 10 * time.Millisecond, Most: 10 * time.Minute}, func(k *Kafka) *time.Duration { return &k.CommitInterval }),
		shape.Key(shape.Meta{Name: "on_lost_records", Def: "halt", Doc: "What happens if records were deleted before they were read. `halt`: the partition stops until a person sets the group's offset; other partitions continue. `go_on`: the loss is logged with its offsets and the partition continues after it."},
			shape.Choice[kafka.LostRecords]{Options: []shape.Option[kafka.LostRecords]{{Word: "halt", Value: kafka.Halt}, {Word: "go_on", Value: kafka.GoOn}}}, func(k *Kafka) *kafka.LostRecords { return &k.OnLostRecords }),
		shape.Key(shape.Meta{Name: "start", Def: "earliest", Doc: "Where to start when the group first joins a topic: `earliest`; `now`, after all existing records; a time; or another group's offsets. Partitions and topics added later are always read from their beginning."},
			startShape(), func(k *Kafka) *kafka.Start { return &k.Start }),
	}
}

func recordKeys() []shape.Field[Kafka] {
	return []shape.Field[Kafka]{
		shape.Key(shape.Meta{Name: "isolation", Def: "read_committed", Doc: "`read_committed` skips records of open and aborted transactions; `read_uncommitted` reads them."},
			shape.Choice[bool]{Options: []shape.Option[bool]{{Word: "read_committed"}, {Word: "read_uncommitted", Value: true}}}, func(k *Kafka) *bool { return &k.ReadUncommitted }),
		shape.Key(shape.Meta{Name: "format", Def: "records", Doc: "The format of records. `records`: key, headers and value unchanged, with CloudEvents in binary mode recognised by `ce_` headers; `cloudevents`: also the structured mode, recognised by its content type."},
			shape.Choice[kafka.Format]{Options: []shape.Option[kafka.Format]{{Word: "records", Value: kafka.Records}, {Word: "cloudevents", Value: kafka.CloudEvents}}},
			func(k *Kafka) *kafka.Format { return &k.Format }),
		shape.Key(shape.Meta{Name: "max_record", Def: "16MiB", Doc: "The maximum size of a value. A record with a longer value is parked as `too large`. At most the `max_body` of the consumers."},
			shape.Size{Least: 64 << 10, Most: 90 << 20}, func(k *Kafka) *int64 { return &k.MaxRecord }),
		shape.Key(shape.Meta{Name: "max_batch", Doc: "The maximum size of a decompressed record batch; default 32 MiB, or more if `max_record` needs it. A larger batch stops its partition, and the log explains how to continue."},
			shape.Size{Least: 64 << 10, Most: 1 << 30}, func(k *Kafka) *int64 { return &k.MaxBatch }),
		shape.Key(shape.Meta{Name: "max_fetch", Doc: "The maximum compressed size of one fetch from a broker. Default: all brokers share a quarter of `max_unacked`, with 1 to 16 MiB each."},
			shape.Size{Least: 1 << 10, Most: 90 << 20}, func(k *Kafka) *int64 { return &k.MaxFetch }),
		shape.Key(shape.Meta{Name: "max_partition_fetch", Doc: "The same for one partition; default 1 MiB, or `max_fetch` if that is less."},
			shape.Size{Least: 1 << 10, Most: 90 << 20}, func(k *Kafka) *int64 { return &k.MaxPartitionFetch }),
	}
}

// securityKeys returns the keys for encryption and authentication of broker connections.
func securityKeys[T any](tls func(*T) **TLS, sasl func(*T) **SASL) []shape.Field[T] {
	return []shape.Field[T]{
		shape.Key(shape.Meta{Name: "tls", Def: "false", Doc: "Encrypts every connection: `true` with the certificate authorities of the system, or a mapping."},
			encryption{tlsShape()}, tls),
		shape.Key(shape.Meta{Name: "sasl", Doc: "Authentication. Secrets must come from the environment or from a file; a secret in plain text is rejected."},
			shape.Optional[SASL](saslShape()), sasl),
	}
}

// startShape describes where a new group starts: a word, a time, or the offsets of another group.
func startShape() shape.Object[kafka.Start] {
	return shape.Object[kafka.Start]{
		Short: shape.Choice[kafka.Start]{Options: []shape.Option[kafka.Start]{
			{Word: "earliest"}, {Word: "now", Value: kafka.Start{Now: true}},
			{Word: "latest", Reason: "latest would also skip what a new partition got before the group saw it",
				Remedy: "write now: it skips only what is there when the group first joins"}}},
		OneOf: []string{"at", "group"},
		Fields: []shape.Field[kafka.Start]{
			shape.Key(shape.Meta{Name: "at", Doc: "The first record with this time or a later one: the time of the producer, or of the broker if the topic has `LogAppendTime`."},
				instant{}, func(s *kafka.Start) *time.Time { return &s.At }),
			shape.Key(shape.Meta{Name: "group", Doc: "The committed offsets of this group. A partition without one starts at its beginning."},
				shape.Word{What: "the name of a group"}, func(s *kafka.Start) *string { return &s.Group }),
		}}
}

func tlsShape() shape.Object[TLS] {
	return shape.Object[TLS]{
		Short: tlsSwitch{},
		Fields: append(tlsFiles(), shape.Key(shape.Meta{Name: "server_name", Doc: "The name in the server certificates, if it differs from the host."},
			shape.Word{What: "a host name"}, func(t *TLS) *string { return &t.ServerName }))}
}

// tlsFiles returns the keys for files with certificate authorities and with the client's certificate.
func tlsFiles() []shape.Field[TLS] {
	file := shape.Path{Word: shape.Word{What: "a path"}}
	return []shape.Field[TLS]{
		shape.Key(shape.Meta{Name: "ca", Doc: "A PEM file of certificate authorities, instead of those of the system."}, file, func(t *TLS) *string { return &t.CA }),
		shape.Key(shape.Meta{Name: "cert", Doc: "A PEM file with the client certificate. Needs `key`."}, file, func(t *TLS) *string { return &t.Cert }),
		shape.Key(shape.Meta{Name: "key", Doc: "A PEM file with the private key of the certificate."}, file, func(t *TLS) *string { return &t.Key }),
	}
}

func saslShape() shape.Object[SASL] {
	return shape.Object[SASL]{
		OneOf: []string{"plain", "scram_sha_256", "scram_sha_512", "oauthbearer"},
		Fields: []shape.Field[SASL]{
			shape.Key(shape.Meta{Name: "plain", Doc: "User and password, in plain text unless `tls` is set."}, shape.Optional[Login](loginShape()), func(s *SASL) **Login { return &s.Plain }),
			shape.Key(shape.Meta{Name: "scram_sha_256", Doc: "User and password; the password is not sent."}, shape.Optional[Login](loginShape()), func(s *SASL) **Login { return &s.Scram256 }),
			shape.Key(shape.Meta{Name: "scram_sha_512", Doc: "The same with SHA-512."}, shape.Optional[Login](loginShape()), func(s *SASL) **Login { return &s.Scram512 }),
			shape.Key(shape.Meta{Name: "oauthbearer", Doc: "A bearer token."}, shape.Optional[Bearer](bearerShape()), func(s *SASL) **Bearer { return &s.OAuthBearer }),
		}}
}

func loginShape() shape.Object[Login] {
	return shape.Object[Login]{
		OneOf: []string{"password", "password_file"},
		Fields: []shape.Field[Login]{
			shape.Key(shape.Meta{Name: "user", Required: true, Doc: "The user."}, shape.Word{What: "the name of a user"}, func(l *Login) *string { return &l.User }),
			shape.Key(shape.Meta{Name: "password", Doc: "The password, as an environment variable `${NAME}`."}, secret{}, func(l *Login) *string { return &l.Password }),
			shape.Key(shape.Meta{Name: "password_file", Doc: "A file whose only line is the password, read at every login."},
				shape.Path{Word: shape.Word{What: "a path"}}, func(l *Login) *string { return &l.PasswordFile }),
		}}
}

func bearerShape() shape.Object[Bearer] {
	return shape.Object[Bearer]{
		OneOf: []string{"token", "token_file"},
		Fields: []shape.Field[Bearer]{
			shape.Key(shape.Meta{Name: "token", Doc: "The token, as an environment variable `${NAME}`."}, secret{}, func(b *Bearer) *string { return &b.Token }),
			shape.Key(shape.Meta{Name: "token_file", Doc: "A file whose only line is the token, read at every login, so the token can be rotated."},
				shape.Path{Word: shape.Word{What: "a path"}}, func(b *Bearer) *string { return &b.TokenFile }),
		}}
}

func deadLetterShape() shape.Object[DeadLetter] {
	return shape.Object[DeadLetter]{Fields: []shape.Field[DeadLetter]{
		shape.Key(shape.Meta{Name: "topic", Required: true, Doc: "A topic of the source's cluster. It must exist and must not be one of `topics`; if `topic_pattern` matches it, it is not read."},
			topicName(), func(l *DeadLetter) *string { return &l.Topic }),
	}}
}

const topicPattern = `^[A-Za-z0-9._-]{1,249}$`

func topicName() shape.Word {
	return shape.Word{What: "the name of a topic", Pattern: topicPattern, Check: badTopic}
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
		return "this is not a valid regular expression: " + err.Error(), `write one in the syntax of RE2, as "orders\\..*"`
	}
	return "", ""
}

// brokersShape describes a list of brokers. Each text of the list can name several brokers.
type brokersShape struct{ shape.Leaf }

func (brokersShape) list() shape.List[string] {
	return shape.List[string]{Item: shape.Word{What: "a broker as host:port", Check: badBrokers}, Single: true}
}

func (s brokersShape) Read(d *shape.Decoder, p shape.Place) ([]string, bool) {
	texts, ok := s.list().Read(d, p)
	var all []string
	for _, text := range texts {
		for broker := range strings.SplitSeq(text, ",") {
			all = append(all, strings.TrimSpace(broker))
		}
	}
	return all, ok
}

func (s brokersShape) Words() string { return s.list().Words() }

func (s brokersShape) Schema() shape.Schema { return s.list().Schema() }

func badBrokers(text string) (reason, remedy string) {
	for broker := range strings.SplitSeq(text, ",") {
		host, port, err := net.SplitHostPort(strings.TrimSpace(broker))
		n, notNumber := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || notNumber != nil || n == 0 {
			return "this is not a broker address", `write "host:port", as "127.0.0.1:9092"`
		}
	}
	return "", ""
}

// encryption reads an encryption key: a mapping, or true or false.
type encryption struct{ shape.Object[TLS] }

func (s encryption) Read(d *shape.Decoder, p shape.Place) (*TLS, bool) {
	v, ok := s.Object.Read(d, p)
	if v.off {
		return nil, ok
	}
	return &v, ok
}

// tlsSwitch reads the short form of the key tls: true or false.
type tlsSwitch struct{ shape.Boolean }

func (s tlsSwitch) Read(d *shape.Decoder, p shape.Place) (TLS, bool) {
	on, ok := s.Boolean.Read(d, p)
	return TLS{off: !on}, ok
}

// instant describes a time with its zone.
type instant struct{ shape.Leaf }

func (s instant) Read(d *shape.Decoder, p shape.Place) (time.Time, bool) {
	text, ok := d.Text(&p, s.Words())
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		d.Fault(p, p.Shown(text)+" is not a time", "write "+s.Words())
	}
	return at, err == nil
}

func (instant) Words() string { return "a time with its zone, as 2026-01-01T00:00:00Z" }

func (instant) Schema() shape.Schema {
	return shape.OrVariable(shape.Schema{"type": "string", "pattern": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`})
}

// instantOrDate describes a time with its zone, or a date, which means midnight UTC.
type instantOrDate struct{ shape.Leaf }

func (s instantOrDate) Read(d *shape.Decoder, p shape.Place) (time.Time, bool) {
	text, ok := d.Text(&p, s.Words())
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	switch {
	case err != nil:
		d.Fault(p, p.Shown(text)+" is not a time", "write "+s.Words())
	case at.Year() < firstYear:
		d.Fault(p, fmt.Sprintf("%s is before %d", p.Shown(text), firstYear), fmt.Sprintf("write %d-01-01 for all time", firstYear))
		return at, false
	}
	return at, err == nil
}

// firstYear is the earliest valid year. Times before firstYear are rejected, because the zero time means that
// no time is set.
const firstYear = 1970

func (instantOrDate) Words() string {
	return "a date, as 2026-01-01, or a time with its zone, as 2026-01-01T00:00:00Z"
}

func (instantOrDate) Schema() shape.Schema {
	return shape.OrVariable(shape.Schema{"type": "string", "pattern": `^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))?$`})
}

// secret describes a secret value. The policy file must refer to the secret by variable or file, and Semel
// never shows the secret.
type secret struct {
	shape.Leaf
	// noFile forbids a reference to a file.
	noFile bool
}

// secretPattern matches the texts that isReference accepts.
const secretPattern = `^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`

func (s secret) Read(d *shape.Decoder, p shape.Place) (string, bool) {
	n := p.Value()
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.WrongType(p, s.Words())
		return "", false
	}
	if !isReference(n.Value) {
		remedy := "write " + s.Words()
		if !s.noFile {
			remedy += ", or name a file that holds it"
		}
		d.Fault(p, "the policy contains a secret in plain text", remedy)
		return "", false
	}
	text, ok := d.Text(&p, s.Words())
	if ok && text == "" {
		d.Fault(p, "the environment variable is empty", "set it to the secret")
		return "", false
	}
	return text, ok
}

// isReference reports whether text is exactly one environment variable, without a default value.
func isReference(text string) bool {
	name, opened := strings.CutPrefix(text, "${")
	name, closed := strings.CutSuffix(name, "}")
	return opened && closed && shape.IsVariable(name)
}

func (secret) Words() string { return "${NAME} alone, a variable of the environment" }

func (secret) Schema() shape.Schema { return shape.Schema{"type": "string", "pattern": secretPattern} }
