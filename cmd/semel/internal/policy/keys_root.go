package policy

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The table of every key of a policy begins here: the whole file, stores and
// sources. keys_consumer.go goes on. To add a key, add one line to a table and
// a field to the type it goes to; a key that is not built yet is a line with
// later. Parser, JSON Schema and reference follow.

// root is the whole file.
type root struct {
	Version   int
	Audit     Audit
	Listen    Listen
	Recorder  Recorder
	Traces    Traces
	Stores    []*Store
	Sources   []*Source
	Consumers []*Consumer
}

func rootShape() object[root] {
	return object[root]{fields: []field[root]{
		key(meta{name: "version", required: true, doc: "The version of this format: 1."},
			count{least: 1, most: 1}, func(r *root) *int { return &r.Version }),
		key(meta{name: "stores", required: true, doc: "The databases that keep Semel's records, by name."},
			named[Store]{what: "store", item: storeShape(), set: func(s *Store, name string) { s.Name = name }},
			func(r *root) *[]*Store { return &r.Stores }),
		key(meta{name: "sources", required: true, doc: "Where messages come from, by name."},
			named[Source]{what: "source", item: sourceShape(), set: func(s *Source, name string) { s.Name = name }},
			func(r *root) *[]*Source { return &r.Sources }),
		key(meta{name: "audit", doc: "How acts of operators are sealed. See [audit](audit.md)."},
			auditShape(), func(r *root) *Audit { return &r.Audit }),
		key(meta{name: "listen", doc: "Where `semel run` serves its [metrics](metrics.md) and its health (`/metrics`, `/livez`, `/readyz`): an address, or a mapping. Nowhere unless it is set."},
			listenShape(), func(r *root) *Listen { return &r.Listen }),
		key(meta{name: "recorder", doc: "Keep what each consumer of `semel run` heard and decided last, so that it can be written to a file and replayed. Nothing unless it is set. See [recorder](recorder.md)."},
			recorderShape(), func(r *root) *Recorder { return &r.Recorder }),
		key(meta{name: "traces", doc: "Send spans of sampled messages to a collector of OpenTelemetry. Nothing unless it is set. See [traces](traces.md)."},
			tracesShape(), func(r *root) *Traces { return &r.Traces }),
		key(meta{name: "consumers", required: true, doc: "The consumers, by name. The name scopes every record that a consumer owns: under another name every message is new."},
			named[Consumer]{what: "consumer", item: consumerShape(), set: func(c *Consumer, name string) { c.Name = name }},
			func(r *root) *[]*Consumer { return &r.Consumers }),
	}}
}

func storeShape() object[Store] {
	return object[Store]{
		oneOf: []string{"sqlite", "postgres", "mysql", "redis", "dynamodb"},
		fields: []field[Store]{
			key(meta{name: "sqlite", doc: "A SQLite file."},
				pointer[SQLite]{sqliteShape()}, func(s *Store) **SQLite { return &s.SQLite }),
			key(meta{name: "postgres", doc: "A PostgreSQL database."},
				pointer[Postgres]{postgresShape()}, func(s *Store) **Postgres { return &s.Postgres }),
			later[Store]("mysql", "A MySQL or MariaDB database."),
			key(meta{name: "redis", doc: "A Redis server, for leased keys: of consumers with `strategy: lease`. See [leased keys](leased-keys.md)."},
				pointer[Redis]{redisShape()}, func(s *Store) **Redis { return &s.Redis }),
			later[Store]("dynamodb", "A DynamoDB table."),
			key(meta{name: "migrate", def: "false", doc: "Let `semel run` create and change Semel's tables. Without it, missing tables are an error that names the command."},
				boolean{}, func(s *Store) *bool { return &s.Migrate }),
			key(meta{name: "encryption", doc: "How bodies, headers, results and outputs of steps are encrypted that Semel's tables keep. What was kept before is read as it is. Not for Redis. See [erasing and encrypting](erase.md#encryption)."},
				pointer[Encryption]{encryptionShape()}, func(s *Store) **Encryption { return &s.Encryption }),
			key(meta{name: "setup", doc: "A file of your own SQL statements, run once after the migration and recorded by its hash."},
				path{word: word{what: "a path"}}, func(s *Store) *string { return &s.Setup }),
		}}
}

func sqliteShape() object[SQLite] {
	return object[SQLite]{fields: []field[SQLite]{
		key(meta{name: "path", required: true, doc: "The database file, made if it is missing. Relative to the policy file."},
			path{word: word{what: "a path", check: badDatabase}}, func(s *SQLite) *string { return &s.Path }),
		key(meta{name: "prefix", def: usualPrefix, doc: "What the names of Semel's tables begin with."},
			word{what: "a table prefix", pattern: `^[A-Za-z_][A-Za-z0-9_]{0,31}$`, check: badPrefix}, func(s *SQLite) *string { return &s.Prefix }),
	}}
}

// badDatabase refuses what SQLite takes for a database in memory, which forgets every marker when
// its connection ends, and names of files that look like one.
func badDatabase(s string) (reason, remedy string) {
	switch {
	case filepath.Base(s) == ":memory:":
		return "a database in memory forgets what was applied when its connection ends", "name a file, as shop.db"
	case strings.HasPrefix(s, "file:"):
		return "this is a URI, and path is that of a file", "write the path alone, as shop.db"
	}
	return "", ""
}

func badPrefix(s string) (reason, remedy string) {
	if badName(s) == "" && isVariable(s) && len(s) <= 32 {
		return "", ""
	}
	return "this cannot begin a table's name", "use letters, digits and '_', at most 32 of them, not a digit first"
}

func sourceShape() object[Source] {
	return object[Source]{
		oneOf: []string{"file", "kafka", "rabbitmq", "nats", "sqs", "redis_streams", "webhook", "table"},
		fields: []field[Source]{
			key(meta{name: "file", doc: "Lines of a file or of standard input, one message a line."},
				pointer[File]{fileShape()}, func(s *Source) **File { return &s.File }),
			key(meta{name: "kafka", doc: "Topics of a Kafka cluster. See [kafka.md](kafka.md)."},
				pointer[Kafka]{kafkaShape()}, func(s *Source) **Kafka { return &s.Kafka }),
			later[Source]("rabbitmq", "Queues of RabbitMQ."),
			later[Source]("nats", "A NATS JetStream consumer."),
			later[Source]("sqs", "An Amazon SQS queue."),
			later[Source]("redis_streams", "Redis streams with a consumer group."),
			key(meta{name: "webhook", doc: "HTTP requests with a verified signature, answered when they are in the store. See [webhooks](webhooks.md)."},
				pointer[Webhook]{webhookShape()}, func(s *Source) **Webhook { return &s.Webhook }),
			later[Source]("table", "A database table, as an outbox read directly."),
		}}
}

func fileShape() object[File] {
	return object[File]{fields: []field[File]{
		key(meta{name: "path", required: true, doc: "The file, relative to the policy file; `-` is standard input."},
			path{word: word{what: "a path, or -"}, stdin: true}, func(f *File) *string { return &f.Path }),
		key(meta{name: "format", def: "cloudevents", doc: "How a line is read: `cloudevents` is the structured JSON format, whose attributes become `ce-` headers; `envelope` is `{\"key\": …, \"headers\": {…}, \"body\": …}`; `json` means that the line itself is the body."},
			words("cloudevents", "envelope", "json"), func(f *File) *string { return &f.Format }),
		key(meta{name: "follow", def: "false", doc: "Wait for more at the end of the file instead of ending. A last line without its line end waits for it; without `follow` it is read if it is a complete JSON object or array, and otherwise left unread with a warning."},
			boolean{}, func(f *File) *bool { return &f.Follow }),
		key(meta{name: "max_line", def: "16MiB", doc: "The longest line that is read as a message. A longer one is parked as `too large` with its first 64 KiB, its offset and its length. At most the `max_body` of the consumers that read it."},
			size{least: 64 << 10, most: 1 << 30}, func(f *File) *int64 { return &f.MaxLine }),
	}}
}

// words is a choice among texts that mean themselves.
func words(all ...string) choice[string] {
	var c choice[string]
	for _, w := range all {
		c.options = append(c.options, option[string]{word: w, value: w})
	}
	return c
}

// JSONSchema is the JSON Schema of the policy file, for editors. A key that is
// not available yet is in it with a text that says so, and refused.
func JSONSchema() []byte {
	s := rootShape().schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Semel policy"
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // a schema is maps, lists, texts and numbers
	}
	return append(text, '\n')
}

// Reference is the table of all keys as Markdown, for docs/policy.md.
func Reference() string { return referenceOf(rootShape().keys()) }

// LeastAuditKey is how many bytes a key of the audit has at least: with fewer it could be
// guessed.
const LeastAuditKey = 32

// Audit says how acts of operators are sealed.
type Audit struct {
	// Key is what they are sealed under, a secret: never print it; empty for none.
	Key string
}

func auditShape() object[Audit] {
	return object[Audit]{fields: []field[Audit]{
		key(meta{name: "key", doc: "A secret of at least 32 bytes, at random, as `${SEMEL_AUDIT_KEY}`, under which acts are sealed in all stores of the file: who can write the tables and has it not cannot seal an act that was changed. All processes of a store need the same one. Keep it: without it nobody can verify."},
			word{what: "a secret of at least 32 bytes", check: badAuditKey}, func(a *Audit) *string { return &a.Key }),
	}}
}

// badAuditKey says nothing of the secret but how long it is.
func badAuditKey(s string) (reason, remedy string) {
	if len(s) < LeastAuditKey {
		return fmt.Sprintf("a key of %d bytes could be guessed", len(s)), fmt.Sprintf("give at least %d, at random, as openssl rand -hex 32 makes them", LeastAuditKey)
	}
	return "", ""
}

// Recorder says whether `semel run` records what its consumers decide.
type Recorder struct {
	// Folder is where recordings are written, resolved; empty: nothing is recorded.
	Folder string
	// Size is how many bytes the recording of a consumer takes.
	Size int64
	// IDs says that messages are recorded by their names.
	IDs bool
}

func recorderShape() object[Recorder] {
	return object[Recorder]{fields: []field[Recorder]{
		key(meta{name: "folder", required: true, doc: "Where recordings are written, relative to the policy file. It must exist."},
			path{word: word{what: "a path"}}, func(r *Recorder) *string { return &r.Folder }),
		key(meta{name: "size", def: "8MiB", doc: "About how much memory the recording of one consumer takes at most. What it decided last is kept, about 260 bytes a message, so that this is how far back it goes: at 1,000 messages a second, 8 MiB are half a minute."},
			size{least: 64 << 10, most: 1 << 30}, func(r *Recorder) *int64 { return &r.Size }),
		key(meta{name: "ids", def: "false", doc: "Record identities, sources, streams and the reasons of handlers as they are. Otherwise they stand there as hashes that nobody can look up."},
			boolean{}, func(r *Recorder) *bool { return &r.IDs }),
	}}
}

// Listen says where `semel run` serves its metrics and its health.
type Listen struct {
	// Address is host:port; empty: nowhere.
	Address string
	// TokenFile holds the token that metrics and reasons ask for; empty: they ask for none.
	// Its path is resolved.
	TokenFile string
	// TLS is nil where nothing is encrypted.
	TLS *ListenTLS
	// RestartOnOutage is after how long an outage of a store fails liveness; 0: never.
	RestartOnOutage time.Duration
}

// ListenTLS says who a run is, and whose certificates give access. Paths are resolved.
type ListenTLS struct {
	// Certificate and Key are PEM files of this side, Clients one of authorities; empty: no
	// certificate gives access.
	Certificate, Key, Clients string
}

func listenShape() object[Listen] {
	return object[Listen]{
		fields: []field[Listen]{
			key(meta{name: "address", required: true, doc: "Host and port, as `127.0.0.1:9464` or `[::1]:9464`. Another host than loopback needs `token_file`, or `tls` with `clients`."},
				word{what: "host:port", check: badListen}, func(l *Listen) *string { return &l.Address }),
			key(meta{name: "token_file", doc: "A file with a token of at least 16 bytes on its only line, relative to the policy file and read at each request, so that it can be renewed. `/metrics` and the reasons of `/livez` and `/readyz` ask for it, as `Authorization: Bearer …`."},
				path{word: word{what: "a path"}}, func(l *Listen) *string { return &l.TokenFile }),
			key(meta{name: "tls", doc: "Serves https. Without it the token and the figures can be read on the way."}, pointer[ListenTLS]{listenTLSShape()}, func(l *Listen) **ListenTLS { return &l.TLS }),
			key(meta{name: "restart_on_outage", doc: "Have `/livez` fail when a store has not worked for so long, or not answered at the start, so that who watches the process starts it anew. A restart mends no database: without this key no outage fails it, and the consumers go on by themselves."},
				span{least: 10 * time.Second, most: day}, func(l *Listen) *time.Duration { return &l.RestartOnOutage }),
		},
		short: listenAddress{word{what: "host:port", check: badListen}},
	}
}

func listenTLSShape() object[ListenTLS] {
	file := path{word: word{what: "a path"}}
	return object[ListenTLS]{fields: []field[ListenTLS]{
		key(meta{name: "certificate", required: true, doc: "A PEM file with the certificate of this side, read anew for each connection, so that it can be renewed."}, file, func(t *ListenTLS) *string { return &t.Certificate }),
		key(meta{name: "key", required: true, doc: "A PEM file with its key."}, file, func(t *ListenTLS) *string { return &t.Key }),
		key(meta{name: "clients", doc: "A PEM file of authorities: who shows a certificate of theirs may read metrics and reasons, as who has the token may. Probes need none."}, file, func(t *ListenTLS) *string { return &t.Clients }),
	}}
}

// listenAddress is a Listen without a token.
type listenAddress struct{ word }

func (s listenAddress) read(d *decoder, p place) (Listen, bool) {
	address, ok := s.word.read(d, p)
	return Listen{Address: address}, ok
}

func badListen(s string) (reason, remedy string) {
	host, port, err := net.SplitHostPort(s)
	n, notNumber := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || notNumber != nil || n == 0:
		return "this is no address to listen on", `write "host:port" with a port of 1 to 65535, as "127.0.0.1:9464"`
	case host == "":
		return "it names no host, and so means every interface of the machine", `name it, as "127.0.0.1:9464", or "0.0.0.0:9464" with a token_file`
	}
	return "", ""
}

// Loopback reports whether only this machine reaches the address.
func (l Listen) Loopback() bool {
	host, _, err := net.SplitHostPort(l.Address)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// checkListen refuses metrics that anybody could read.
func (p *Policy) checkListen(d *decoder) {
	l := p.Listen
	if l.Address == "" || l.TokenFile != "" || l.TLS != nil && l.TLS.Clients != "" || l.Loopback() || !d.sound("listen") {
		return
	}
	at := "listen"
	if d.given("listen.address") {
		at = "listen.address"
	}
	d.faultAt(at, "who reaches this address could read metrics and the reasons of failures, which name consumers and places",
		`listen on 127.0.0.1, or name a file with a token: listen: {address: "`+l.Address+`", token_file: FILE}, or authorities under tls.clients`)
}

// Traces say where the spans of `semel run` go.
type Traces struct {
	// OTLP is a URL of OTLP over HTTP, whole; empty: there are no spans.
	OTLP string
	// Ratio is the share of sampled traces that are recorded; 0: all.
	Ratio float64
}

func tracesShape() object[Traces] {
	return object[Traces]{
		fields: []field[Traces]{
			key(meta{name: "otlp", required: true, doc: "Where spans are sent, in OpenTelemetry's protocol over HTTP, as `http://127.0.0.1:4318`; without a path `/v1/traces`. What a collector asks for beside it, as a token, stands in the variables of the environment that OpenTelemetry names: `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_CERTIFICATE`."},
				otlpURL(), func(t *Traces) *string { return &t.OTLP }),
			key(meta{name: "ratio", doc: "Of the traces that their producers sampled, record this share, from 0.0001 to 1, chosen by the trace's id: who else takes this share takes the same ones. Without it all are recorded. A message whose producer did not sample it makes no span."},
				share{}, func(t *Traces) *float64 { return &t.Ratio }),
		},
	}
}

func otlpURL() word { return word{what: "a URL", check: badOTLP} }

func badOTLP(s string) (reason, remedy string) {
	const write = `write the collector's address, as "http://127.0.0.1:4318"`
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !portOf(u):
		return "this is no address of a collector", write
	case u.User != nil:
		return "a name or password in the address is shown where it fails", "give it by OTEL_EXPORTER_OTLP_HEADERS in the environment"
	case u.RawQuery != "" || u.Fragment != "":
		return "a collector's address has no query and no fragment", write
	}
	return "", ""
}

// portOf reports whether the port of an address, if it has one, is one.
func portOf(u *url.URL) bool {
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil && n > 0
}

// Endpoint is the whole URL.
func (t Traces) Endpoint() string {
	u, err := url.Parse(t.OTLP)
	if err == nil && strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
		return u.String()
	}
	return t.OTLP
}

// share is a number above 0, at most 1.
type share struct{ leaf }

// leastShare is the least share: one of 10,000.
const leastShare = 0.0001

func (s share) read(d *decoder, p place) (float64, bool) {
	text, ok := d.text(&p, s.words())
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || d.quoted(p) || !(v >= leastShare && v <= 1) {
		d.fault(p, p.shown(text)+" is no share", "write "+s.words()+", without quotes")
		return 0, false
	}
	return v, true
}

func (share) words() string { return "a number, 0.0001 to 1" }

func (share) schema() schema {
	return orVariable(schema{"type": "number", "minimum": leastShare, "maximum": 1})
}
