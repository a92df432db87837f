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

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
)

// This Go file starts the table of all policy keys: it has the keys of the policy's root, of stores and of
// sources. keys_consumer.go continues the table.
//
// To add a key, add a line to a table and a field to the table's type. A line with shape.Later is a key that is planned
// but not available yet. The parser, the JSON Schema and the reference are generated from the tables.

// root has the keys at the top of the policy file.
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

func rootShape() shape.Object[root] {
	return shape.Object[root]{Fields: []shape.Field[root]{
		shape.Key(shape.Meta{Name: "version", Required: true, Doc: "The version of this format: 1."},
			shape.Count{Least: 1, Most: 1}, func(r *root) *int { return &r.Version }),
		shape.Key(shape.Meta{Name: "stores", Required: true, Doc: "The databases that store Semel's records, by name."},
			shape.Named[Store]{What: "store", Item: storeShape(), Set: func(s *Store, name string) { s.Name = name }},
			func(r *root) *[]*Store { return &r.Stores }),
		shape.Key(shape.Meta{Name: "sources", Required: true, Doc: "Where messages come from, by name."},
			shape.Named[Source]{What: "source", Item: sourceShape(), Set: func(s *Source, name string) { s.Name = name }},
			func(r *root) *[]*Source { return &r.Sources }),
		shape.Key(shape.Meta{Name: "audit", Doc: "How the audit trail is sealed. See [audit](audit.md)."},
			auditShape(), func(r *root) *Audit { return &r.Audit }),
		shape.Key(shape.Meta{Name: "listen", Doc: "Where `semel run` serves its [metrics](metrics.md) and its health (`/metrics`, `/livez`, `/readyz`): an address, or a mapping. Default: not served."},
			listenShape(), func(r *root) *Listen { return &r.Listen }),
		shape.Key(shape.Meta{Name: "recorder", Doc: "Records the latest events and decisions of each consumer in memory, for `semel consumers record`. Default: off. See [recorder](recorder.md)."},
			recorderShape(), func(r *root) *Recorder { return &r.Recorder }),
		shape.Key(shape.Meta{Name: "traces", Doc: "Sends spans of sampled messages to an OpenTelemetry collector. Default: off. See [traces](traces.md)."},
			tracesShape(), func(r *root) *Traces { return &r.Traces }),
		shape.Key(shape.Meta{Name: "consumers", Required: true, Doc: "The consumers, by name. All records of a consumer belong to its name: under another name, every message is new."},
			shape.Named[Consumer]{What: "consumer", Item: consumerShape(), Set: func(c *Consumer, name string) { c.Name = name }},
			func(r *root) *[]*Consumer { return &r.Consumers }),
	}}
}

func storeShape() shape.Object[Store] {
	return shape.Object[Store]{
		OneOf: []string{"sqlite", "postgres", "mysql", "redis", "dynamodb"},
		Fields: []shape.Field[Store]{
			shape.Key(shape.Meta{Name: "sqlite", Doc: "A SQLite database file."},
				shape.Optional[SQLite](sqliteShape()), func(s *Store) **SQLite { return &s.SQLite }),
			shape.Key(shape.Meta{Name: "postgres", Doc: "A PostgreSQL database."},
				shape.Optional[Postgres](postgresShape()), func(s *Store) **Postgres { return &s.Postgres }),
			shape.Later[Store]("mysql", "A MySQL or MariaDB database."),
			shape.Key(shape.Meta{Name: "redis", Doc: "A Redis server for leased keys, for consumers with `strategy: lease`. See [leased keys](leased-keys.md)."},
				shape.Optional[Redis](redisShape()), func(s *Store) **Redis { return &s.Redis }),
			shape.Later[Store]("dynamodb", "A DynamoDB table."),
			shape.Key(shape.Meta{Name: "migrate", Def: "false", Doc: "`true` lets `semel run` create and upgrade Semel's tables. With `false`, missing tables are an error; the error names the command that creates the tables."},
				shape.Boolean{}, func(s *Store) *bool { return &s.Migrate }),
			shape.Key(shape.Meta{Name: "encryption", Doc: "Encrypts bodies, headers, results and step outputs in Semel's tables. Existing plain rows stay readable. Not for Redis. See [erasing and encrypting](encryption.md)."},
				shape.Optional[Encryption](encryptionShape()), func(s *Store) **Encryption { return &s.Encryption }),
			shape.Key(shape.Meta{Name: "setup", Doc: "A file of your own SQL statements, run once after the migration and recorded by its hash."},
				shape.Path{Word: shape.Word{What: "a path"}}, func(s *Store) *string { return &s.Setup }),
		}}
}

func sqliteShape() shape.Object[SQLite] {
	return shape.Object[SQLite]{Fields: []shape.Field[SQLite]{
		shape.Key(shape.Meta{Name: "path", Required: true, Doc: "The database file, relative to the policy file. It is created if it does not exist."},
			shape.Path{Word: shape.Word{What: "a path", Check: badDatabase}}, func(s *SQLite) *string { return &s.Path }),
		shape.Key(shape.Meta{Name: "prefix", Def: usualPrefix, Doc: "The prefix of Semel's table names."},
			shape.Word{What: "a table prefix", Pattern: `^[A-Za-z_][A-Za-z0-9_]{0,31}$`, Check: badPrefix}, func(s *SQLite) *string { return &s.Prefix }),
	}}
}

// badDatabase rejects SQLite paths of databases in memory, because such a database loses all markers when
// the connection closes. badDatabase also rejects file names that look like such paths.
func badDatabase(s string) (reason, remedy string) {
	switch {
	case filepath.Base(s) == ":memory:":
		return "a database in memory forgets what was applied when its connection ends", "name a file, as shop.db"
	case strings.HasPrefix(s, "file:"):
		return "path must be a file, not a URI", "write the path alone, as shop.db"
	}
	return "", ""
}

func badPrefix(s string) (reason, remedy string) {
	if shape.BadName(s) == "" && shape.IsVariable(s) && len(s) <= 32 {
		return "", ""
	}
	return "a table name cannot have this prefix", "use letters, digits and '_', at most 32 of them, not a digit first"
}

func sourceShape() shape.Object[Source] {
	return shape.Object[Source]{
		OneOf: []string{"file", "kafka", "rabbitmq", "nats", "sqs", "redis_streams", "webhook", "table"},
		Fields: []shape.Field[Source]{
			shape.Key(shape.Meta{Name: "file", Doc: "Lines of a file or of standard input, one message a line."},
				shape.Optional[File](fileShape()), func(s *Source) **File { return &s.File }),
			shape.Key(shape.Meta{Name: "kafka", Doc: "Topics of a Kafka cluster. See [kafka.md](kafka.md)."},
				shape.Optional[Kafka](kafkaShape()), func(s *Source) **Kafka { return &s.Kafka }),
			shape.Later[Source]("rabbitmq", "Queues of RabbitMQ."),
			shape.Later[Source]("nats", "A NATS JetStream consumer."),
			shape.Later[Source]("sqs", "An Amazon SQS queue."),
			shape.Later[Source]("redis_streams", "Redis streams with a consumer group."),
			shape.Key(shape.Meta{Name: "webhook", Doc: "HTTP requests with a verified signature, answered after they are stored. See [webhooks](webhooks.md)."},
				shape.Optional[Webhook](webhookShape()), func(s *Source) **Webhook { return &s.Webhook }),
			shape.Later[Source]("table", "A database table, as an outbox read directly."),
		}}
}

func fileShape() shape.Object[File] {
	return shape.Object[File]{Fields: []shape.Field[File]{
		shape.Key(shape.Meta{Name: "path", Required: true, Doc: "The file, relative to the policy file; `-` is standard input."},
			shape.Path{Word: shape.Word{What: "a path, or -"}, Stdin: true}, func(f *File) *string { return &f.Path }),
		shape.Key(shape.Meta{Name: "format", Def: "cloudevents", Doc: "The format of lines. `cloudevents`: the structured JSON format, whose attributes become `ce-` headers; `envelope`: `{\"key\": …, \"headers\": {…}, \"body\": …}`; `json`: the line is the body."},
			words("cloudevents", "envelope", "json"), func(f *File) *string { return &f.Format }),
		shape.Key(shape.Meta{Name: "follow", Def: "false", Doc: "Wait for new lines at the end of the file instead of ending. With `follow`, a last line without line end is read when its line end arrives. Without `follow`, such a line is read if the line is a complete JSON object or array, and otherwise left unread with a warning."},
			shape.Boolean{}, func(f *File) *bool { return &f.Follow }),
		shape.Key(shape.Meta{Name: "max_line", Def: "16MiB", Doc: "The maximum length of a line. A longer line is parked as `too large` with its first 64 KiB, its offset and its length. At most the `max_body` of the consumers."},
			shape.Size{Least: 64 << 10, Most: 1 << 30}, func(f *File) *int64 { return &f.MaxLine }),
	}}
}

// words describes a choice between texts.
func words(all ...string) shape.Choice[string] {
	var c shape.Choice[string]
	for _, w := range all {
		c.Options = append(c.Options, shape.Option[string]{Word: w, Value: w})
	}
	return c
}

// JSONSchema returns the JSON Schema of the policy file, for editors. The schema rejects planned keys and
// says that they are not available yet.
func JSONSchema() []byte {
	s := rootShape().Schema()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Semel policy"
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic(err) // cannot fail: a schema consists of maps, lists, texts and numbers
	}
	return append(text, '\n')
}

// LeastAuditKey is the minimum length of an audit key, in bytes. A key with fewer bytes could be guessed.
const LeastAuditKey = 32

// Audit configures the audit chain, which shows later changes of the audit trail.
type Audit struct {
	// Key is the secret with which the lines of the audit chain are made; empty without a key. Never print Key.
	Key string
}

func auditShape() shape.Object[Audit] {
	return shape.Object[Audit]{Fields: []shape.Field[Audit]{
		shape.Key(shape.Meta{Name: "key", Doc: "A random secret of at least 32 bytes, as an environment variable such as `${SEMEL_AUDIT_KEY}`, that seals the audit trail of all stores in the file. Without the secret, someone who can write the tables cannot seal a changed entry. All processes of a store need the same secret. Back it up: without it the trail cannot be verified."},
			shape.Word{What: "a secret of at least 32 bytes", Check: badAuditKey}, func(a *Audit) *string { return &a.Key }),
	}}
}

// badAuditKey returns the reason why an audit key is invalid, and a remedy. The reason and the remedy contain
// only the length of the key.
func badAuditKey(s string) (reason, remedy string) {
	if len(s) < LeastAuditKey {
		return fmt.Sprintf("a key of %d bytes could be guessed", len(s)), fmt.Sprintf("give at least %d, at random, as openssl rand -hex 32 makes them", LeastAuditKey)
	}
	return "", ""
}

// Recorder configures the flight recordings of `semel run`.
type Recorder struct {
	// Folder is the absolute path of the folder for recordings; empty if the policy disables recordings.
	Folder string
	// Size is the maximum size of one consumer's recording, in bytes.
	Size int64
	// IDs writes message ids to recordings in plain text.
	IDs bool
}

func recorderShape() shape.Object[Recorder] {
	return shape.Object[Recorder]{Fields: []shape.Field[Recorder]{
		shape.Key(shape.Meta{Name: "folder", Required: true, Doc: "Where recordings are written, relative to the policy file. It must exist."},
			shape.Path{Word: shape.Word{What: "a path"}}, func(r *Recorder) *string { return &r.Folder }),
		shape.Key(shape.Meta{Name: "size", Def: "8MiB", Doc: "The approximate memory of a consumer's recording. A message takes about 260 bytes, so 8 MiB reach back half a minute at 1,000 messages a second."},
			shape.Size{Least: 64 << 10, Most: 1 << 30}, func(r *Recorder) *int64 { return &r.Size }),
		shape.Key(shape.Meta{Name: "ids", Def: "false", Doc: "`true` records identities, sources, streams and reasons of handlers in plain text. Otherwise the recording contains hashes."},
			shape.Boolean{}, func(r *Recorder) *bool { return &r.IDs }),
	}}
}

// Listen configures where `semel run` serves metrics and health.
type Listen struct {
	// Address is host:port; empty if `semel run` serves no metrics.
	Address string
	// TokenFile is the absolute path of the file with the bearer token. Clients need the token to read
	// metrics and the reasons of failed health checks. If TokenFile is empty, clients need no token.
	TokenFile string
	// TLS configures HTTPS; nil for HTTP.
	TLS *ListenTLS
	// RestartOnOutage is the duration of a store outage after which the liveness check fails; 0 means never.
	RestartOnOutage time.Duration
}

// ListenTLS has the absolute paths of the files for HTTPS.
type ListenTLS struct {
	// Certificate and Key are the server's certificate and private key. Clients is the file with the
	// certificate authorities of client certificates; empty if client certificates are not accepted.
	Certificate, Key, Clients string
}

func listenShape() shape.Object[Listen] {
	return shape.Object[Listen]{
		Fields: []shape.Field[Listen]{
			shape.Key(shape.Meta{Name: "address", Required: true, Doc: "Host and port, such as `127.0.0.1:9464` or `[::1]:9464`. A host other than loopback needs `token_file`, or `tls` with `clients`."},
				shape.Word{What: "host:port", Check: badListen}, func(l *Listen) *string { return &l.Address }),
			shape.Key(shape.Meta{Name: "token_file", Doc: "A file whose only line is a token of at least 16 bytes, relative to the policy file. It is read at each request, so the token can be rotated. `/metrics` and the reasons of `/livez` and `/readyz` need it, as `Authorization: Bearer …`."},
				shape.Path{Word: shape.Word{What: "a path"}}, func(l *Listen) *string { return &l.TokenFile }),
			shape.Key(shape.Meta{Name: "tls", Doc: "Serves HTTPS. Without it, token and metrics are sent in plain text."}, shape.Optional[ListenTLS](listenTLSShape()), func(l *Listen) **ListenTLS { return &l.TLS }),
			shape.Key(shape.Meta{Name: "restart_on_outage", Doc: "Makes `/livez` fail when a store has been down for this time, or has not answered for this time at the start, so that an orchestrator restarts the process. Usually not needed: a restart does not repair a database, and consumers continue by themselves after an outage."},
				shape.Span{Least: 10 * time.Second, Most: shape.Day}, func(l *Listen) *time.Duration { return &l.RestartOnOutage }),
		},
		Short: listenAddress{shape.Word{What: "host:port", Check: badListen}},
	}
}

func listenTLSShape() shape.Object[ListenTLS] {
	file := shape.Path{Word: shape.Word{What: "a path"}}
	return shape.Object[ListenTLS]{Fields: []shape.Field[ListenTLS]{
		shape.Key(shape.Meta{Name: "certificate", Required: true, Doc: "A PEM file with the server certificate, read for each connection, so it can be rotated."}, file, func(t *ListenTLS) *string { return &t.Certificate }),
		shape.Key(shape.Meta{Name: "key", Required: true, Doc: "A PEM file with the private key of the certificate."}, file, func(t *ListenTLS) *string { return &t.Key }),
		shape.Key(shape.Meta{Name: "clients", Doc: "A PEM file of certificate authorities. Clients with a certificate from these authorities may read metrics and reasons, as with the token. Probes need no certificate."}, file, func(t *ListenTLS) *string { return &t.Clients }),
	}}
}

// listenAddress describes the short form of the key listen: only an address.
type listenAddress struct{ shape.Word }

func (s listenAddress) Read(d *shape.Decoder, p shape.Place) (Listen, bool) {
	address, ok := s.Word.Read(d, p)
	return Listen{Address: address}, ok
}

func badListen(s string) (reason, remedy string) {
	host, port, err := net.SplitHostPort(s)
	n, notNumber := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || notNumber != nil || n == 0:
		return "this is not an address to listen on", `write "host:port" with a port of 1 to 65535, as "127.0.0.1:9464"`
	case host == "":
		return "the address has no host, which would mean every interface of the machine", `name it, as "127.0.0.1:9464", or "0.0.0.0:9464" with a token_file`
	}
	return "", ""
}

// Loopback reports whether only this machine can reach the address.
func (l Listen) Loopback() bool {
	host, _, err := net.SplitHostPort(l.Address)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// checkListen rejects an address that other machines can reach if neither a token nor client certificates
// protect the metrics.
func (p *Policy) checkListen(d *shape.Decoder) {
	l := p.Listen
	if l.Address == "" || l.TokenFile != "" || l.TLS != nil && l.TLS.Clients != "" || l.Loopback() || !d.Sound("listen") {
		return
	}
	at := "listen"
	if d.Given("listen.address") {
		at = "listen.address"
	}
	d.FaultAt(at, "everybody who can reach this address could read metrics and reasons of failures, which contain names of consumers and hosts",
		`listen on 127.0.0.1, or name a file with a token: listen: {address: "`+l.Address+`", token_file: FILE}, or certificate authorities in tls.clients`)
}

// Traces configure where `semel run` sends spans.
type Traces struct {
	// OTLP is the URL of a collector that accepts OTLP over HTTP; empty if `semel run` sends no spans.
	OTLP string
	// Ratio is the share of sampled traces that are recorded; 0 means all.
	Ratio float64
}

func tracesShape() shape.Object[Traces] {
	return shape.Object[Traces]{
		Fields: []shape.Field[Traces]{
			shape.Key(shape.Meta{Name: "otlp", Required: true, Doc: "The collector, by OTLP over HTTP, such as `http://127.0.0.1:4318`; the default path is `/v1/traces`. Tokens and other settings come from OpenTelemetry's environment variables: `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_CERTIFICATE`."},
				otlpURL(), func(t *Traces) *string { return &t.OTLP }),
			shape.Key(shape.Meta{Name: "ratio", Doc: "The share of the sampled traces to record, from 0.0001 to 1; default all. The choice depends on the trace id, so other programs with the same share choose the same traces. Messages that their producer did not sample have no spans."},
				share{}, func(t *Traces) *float64 { return &t.Ratio }),
		},
	}
}

func otlpURL() shape.Word { return shape.Word{What: "a URL", Check: badOTLP} }

func badOTLP(s string) (reason, remedy string) {
	const write = `write the collector's address, as "http://127.0.0.1:4318"`
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !portOf(u):
		return "this is not the address of a collector", write
	case u.User != nil:
		return "a user or password in the address would be shown in errors", "set the environment variable OTEL_EXPORTER_OTLP_HEADERS instead"
	case u.RawQuery != "" || u.Fragment != "":
		return "the address of a collector must not have a query or fragment", write
	}
	return "", ""
}

// portOf reports whether a URL has a valid port or no port.
func portOf(u *url.URL) bool {
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil && n > 0
}

// share describes a number that is greater than 0 and not greater than 1.
type share struct{ shape.Leaf }

// leastShare is the smallest share: one in 10,000.
const leastShare = 0.0001

func (s share) Read(d *shape.Decoder, p shape.Place) (float64, bool) {
	text, ok := d.Text(&p, s.Words())
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || d.Quoted(p) || !(v >= leastShare && v <= 1) {
		d.Fault(p, p.Shown(text)+" is not a valid share", "write "+s.Words()+", without quotes")
		return 0, false
	}
	return v, true
}

func (share) Words() string { return "a number, 0.0001 to 1" }

func (share) Schema() shape.Schema {
	return shape.OrVariable(shape.Schema{"type": "number", "minimum": leastShare, "maximum": 1})
}
