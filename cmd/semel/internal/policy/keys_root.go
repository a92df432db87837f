package policy

// The table of every key of a policy begins here: the whole file, stores and
// sources. keys_consumer.go goes on. To add a key, add one line to a table and
// a field to the type it goes to; a key that is not built yet is a line with
// later. Parser, JSON Schema and reference follow.

import (
	"path/filepath"
	"strings"
)

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
