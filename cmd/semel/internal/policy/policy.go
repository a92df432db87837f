// Package policy reads Semel's policy file. The file lists consumers, their stores, sources and handlers,
// and what happens to each message.
//
// Reading is strict. Load finds all faults of a file before Semel opens anything. Load reports faults
// together, each with position, reason and remedy. There are faults of structure, of values, of references
// between parts, and of combinations that would lose a message or repeat an effect. Planned keys are
// rejected, never ignored.
//
// One table describes each key; see keys_*.go. The table has the key's type, default, range and text. The
// parser, the JSON Schema and the reference in docs/reference/policy are generated from the table.
package policy

import (
	"path/filepath"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/cmd/semel/internal/sqlhandler"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/upsert"
)

// Policy is a valid policy file. All lists have the file's order.
type Policy struct {
	// Bare is true if the policy was made by Bare from the location of a store, without a file.
	Bare bool
	// File is the name of the policy file. Relative paths in the file refer to the folder Dir.
	File, Dir string
	Stores    []*Store
	Sources   []*Source
	Consumers []*Consumer
	// Audit configures the audit trail of all stores.
	Audit Audit
	// Listen configures the metrics and health checks of `semel run`.
	Listen Listen
	// Recorder configures the flight recordings of `semel run`.
	Recorder Recorder
	// Traces configures where `semel run` sends spans.
	Traces Traces
	// Warnings are about valid settings that are probably a mistake.
	Warnings []shape.Fault
	// Suggest returns a command of semel with the flags with which the user chose the policy; see Command.
	Suggest func(words ...string) string

	positions map[string]shape.Position
}

// Store is a database with Semel's tables, or a Redis server with leased keys.
type Store struct {
	Name string
	// Exactly one of SQLite, Postgres and Redis is set.
	SQLite   *SQLite
	Postgres *Postgres
	Redis    *Redis
	// Migrate allows `semel run` to create and change Semel's tables.
	Migrate bool
	// Encryption configures the encryption of stored messages; nil without encryption.
	Encryption *Encryption
	// Setup is the absolute path of a file with the user's SQL statements, which run once; empty if the
	// policy names no file.
	Setup string
}

// SQLite is a store in a SQLite file.
type SQLite struct {
	// Path is the absolute path of the database file.
	Path string
	// Prefix is the prefix of the names of Semel's tables.
	Prefix string
}

// Dialect returns the SQL dialect for the consumer's statements in the store.
func (c *Consumer) Dialect(s *Store) sqlhandler.Dialect {
	if c.Batch.MaxSize == 1 || c.Strategy.Lease {
		return s.dialect().Alone()
	}
	return s.dialect()
}

func (s *Store) dialect() sqlhandler.Dialect {
	switch {
	case s.Postgres != nil:
		return sqlhandler.Postgres().Tables(s.Postgres.Schema, s.Postgres.Prefix)
	case s.SQLite != nil:
		return sqlhandler.SQLite().Tables("", s.SQLite.Prefix)
	}
	return sqlhandler.SQLite()
}

// Source is a source of messages.
type Source struct {
	Name string
	// Exactly one of File, Kafka and Webhook is set.
	File    *File
	Kafka   *Kafka
	Webhook *Webhook
}

// File is a source that reads one message from each line.
type File struct {
	// Path is the absolute path of the file, or Stdin for standard input.
	Path string
	// Format is "cloudevents", "envelope" or "json".
	Format string
	// Follow waits for new lines at the end of the file.
	Follow bool
	// MaxLine is the maximum length of a line in bytes.
	MaxLine int64
}

// Consumer is a consumer with its settings.
type Consumer struct {
	Name string
	// In is the generation that the consumer works in; nil if the consumer has no generations. The file does
	// not set In.
	In *consumer.Generation
	// From and Store are the names of the consumer's source and store, which exist. From is empty for a
	// consumer that sends intents.
	From, Store string
	// Type is the selector of the message type; empty for the CloudEvents attribute type.
	Type string
	// Filter selects the messages that the consumer processes. OnFiltered is the result of all other
	// messages.
	Filter     consumer.Filter
	OnFiltered consumer.OnFiltered
	// Exclusive stops the start if a service with other handlers uses the consumer's name.
	Exclusive   bool
	Strategy    Strategy
	Identity    Identity
	Fingerprint Fingerprint
	// Version makes the versions of a stream take effect in order; nil without versions.
	Version *Version
	// Dedup is the user's own table, in which Semel also writes markers; nil without such a table.
	Dedup          *Dedup
	OnConflict     consumer.Action
	OnBadIdentity  consumer.Action
	OnPrecondition consumer.Action
	// ReEmitIntents sends the intents of a message again for each of its duplicates.
	ReEmitIntents bool
	// DeadLetter is the destination of dead letters; nil if the policy sets none.
	DeadLetter *DeadLetter
	Lanes      consumer.LaneMode
	OnParked   consumer.OnParked
	// ContinueOnFailure keeps the other consumers of the process running when this consumer fails.
	ContinueOnFailure bool
	Timeout           time.Duration
	Workers           int
	Batch             consumer.BatchLimits
	MaxInMemoryWait   time.Duration
	MaxUnacked        source.Bound
	// MaxBody is the maximum length of a processed body in bytes.
	MaxBody int64
	Drain   time.Duration
	Handler Handler
	Retry   consumer.RetryPolicy
	// AckOnReceipt acks a message as soon as the message is stored, before the effect. Only strategy inbox
	// allows AckOnReceipt.
	AckOnReceipt bool
	// Inbox configures the processing of messages that wait in the store.
	Inbox consumer.InboxPolicy
	// Effect is the declared effect; nil if the policy declares none.
	Effect *Effect
	// Canary is the number of messages of which one runs twice; 0 for none.
	Canary int
	// Replay says whether messages may be replayed; see MayReplay.
	Replay Replay
	// Alerts are the alert thresholds of this consumer.
	Alerts Alerts

	// Retention is how long markers are kept. OnExpired is the result of a message that is older than the
	// retention.
	Retention consumer.RetentionPolicy
	OnExpired consumer.Action

	// FailOpen applies messages without a key while the store of leased keys is down.
	FailOpen bool
}

// Strategy is the mechanism that makes the effect happen once.
type Strategy struct {
	// Marker writes a marker in the same transaction as the effect.
	Marker bool
	// Inbox writes a marker and a row with the message in the same transaction as the effect.
	Inbox bool
	// Lease stores the message first. The effect is a call to another system, made under a claim.
	Lease bool
	// Natural gives the reason why the effect may be repeated; nil for other strategies.
	Natural *Natural
	// BusinessKey is a unique constraint that recognises duplicates, alone or in addition to a marker; nil
	// without such a constraint.
	BusinessKey *BusinessKey
}

// Marks reports whether the strategy writes a marker.
func (s Strategy) Marks() bool { return s.Marker || s.Inbox || s.Lease }

// Natural is the reason why late copies are harmless. Either Order or Because is set.
type Natural struct {
	// Order is "irrelevant" or empty.
	Order string
	// Because is the reason in the user's words.
	Because string
}

// BusinessKey is a unique constraint of the user's tables. A message that violates the constraint is a
// duplicate.
type BusinessKey struct {
	// Constraint is the constraint's name in PostgreSQL. In SQLite, Constraint is "table.column"; several
	// columns are joined by ", ".
	Constraint string
}

// Identity has the selectors of a message's identity.
type Identity struct {
	// ID has the selectors of the id. Several selectors form a composite key.
	ID []string
	// Source is the selector of the producer's name; empty if the policy sets none.
	Source string
	// Trusted accepts a selector whose name suggests that the value is not an identity.
	Trusted bool
	// Previous is the identity of older messages, set while a consumer changes its identity; otherwise nil.
	Previous *PreviousIdentity
}

// PreviousIdentity has the selectors of a message's previous identity.
type PreviousIdentity struct {
	// ID and Source have the same meaning as in Identity.
	ID     []string
	Source string
	// TrustUnfingerprinted treats a message with a known previous identity as a duplicate, even if the
	// content cannot be compared.
	TrustUnfingerprinted bool
}

// Version configures how the versions of a stream take effect in order.
type Version struct {
	// Stream has the selectors of the stream. Number is the selector of the version.
	Stream []string
	Number string
	Start  VersionStart
	// GapDeadline is how long a version waits for the previous version.
	GapDeadline time.Duration
	// GapCap is the maximum distance between a waiting version and the stream's last applied version; 0
	// means no limit.
	GapCap int64
	// Missing is the result of a message without a version.
	Missing consumer.Action

	onGap string
}

// VersionStart is the first version of each stream. With FirstSeen, a stream starts with the first version
// that arrives.
type VersionStart struct {
	Number    int64
	FirstSeen bool
}

// Dedup is the user's own table of processed messages. Semel writes a row for each marker.
type Dedup struct {
	Table   string
	Columns DedupColumns
	// Values are fixed values for further columns.
	Values map[string]string
}

// DedupColumns names the columns of the user's table. All columns except ID are optional.
type DedupColumns struct{ ID, Consumer, Source, ProcessedAt string }

// Fingerprint configures how Semel compares the content of deliveries.
type Fingerprint struct {
	// None disables the comparison.
	None bool
	// Selectors select the compared parts of a message; empty for the complete body.
	Selectors []string
}

// Handler describes how a consumer processes messages. Exactly one of SQL, Types, HTTP and Kafka is set.
type Handler struct {
	// SQL runs statements for every message.
	SQL *SQL
	// Types has a handler for each message type. A message of another type ends with the reason
	// "unknown type".
	Types []TypedHandler
	// HTTP calls an endpoint for every message.
	HTTP *HTTP
	// Kafka publishes every message.
	Kafka *Publish
}

// TypedHandler processes the messages of one type; see consumer.ByType.
type TypedHandler struct {
	// Type is a message type. After the type, "@" and a schema version can follow.
	Type string
	SQL  *SQL
}

// SQL is a handler with SQL statements.
type SQL struct {
	// Params are the named parameters of all statements, in the file's order.
	Params []Param
	// Statements run in this order, in the message's transaction.
	Statements []Statement
	// Intents are written after the statements, in the same transaction.
	Intents []SQLIntent
	// Steps are used instead of Statements and Intents. Each step has its own transaction.
	Steps []SQLStep
}

// Param is a named parameter. A selector gives the parameter's value.
type Param struct {
	Name, Selector string
	// Type is the required type of the value; empty if the policy sets none.
	Type sqlhandler.ParamType
}

// Statement is one SQL statement.
type Statement struct {
	// SQL is the text of the statement. If Upsert is set, the text is generated from Upsert.
	SQL string
	// Upsert is an upsert by version; nil for a statement with a text of the user.
	Upsert *upsert.Newer
	// Rows is the number of rows that the statement must change; nil for any number.
	Rows *int64
	// Otherwise is the result of a message whose statement changes more or fewer rows than Rows says: "park", "discard"
	// or "fail".
	Otherwise string
}

// Load reads the policy file at path. The function env looks up environment variables, like os.LookupEnv. If
// the file has faults, Load returns no policy and the faults, sorted by position.
func Load(path string, env func(string) (string, bool)) (*Policy, []shape.Fault) {
	data, err := shape.ReadFile(path)
	if err != nil {
		return nil, []shape.Fault{{File: path, Line: 1, Column: 1, Kind: shape.Unreadable, Reason: shape.ReadReason(err),
			Remedy: "name a readable policy file with --config"}}
	}
	return Parse(path, data, env)
}

// Parse reads a policy from data, as Load reads a file. Relative paths in data refer to the folder of the
// file name in the parameter name.
func Parse(name string, data []byte, env func(string) (string, bool)) (*Policy, []shape.Fault) {
	p := &Policy{File: name, Dir: filepath.Dir(name)}
	d := shape.NewDecoder(name, p.Dir, env)
	if root := d.Document(data); root != nil {
		read, _ := rootShape().Read(d, shape.Place{Node: root})
		p.Stores, p.Sources, p.Consumers, p.Audit, p.Listen, p.Recorder, p.Traces = read.Stores, read.Sources, read.Consumers, read.Audit, read.Listen, read.Recorder, read.Traces
		check(d, p)
	}
	faults, warnings := d.Sorted()
	if len(faults) > 0 {
		return nil, faults
	}
	p.Warnings, p.positions = warnings, d.Positions
	return p, nil
}

// Store returns the store with this name; nil if the policy has no such store.
func (p *Policy) Store(name string) *Store {
	for _, s := range p.Stores {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Source returns the source with this name; nil if the policy has no such source.
func (p *Policy) Source(name string) *Source {
	for _, s := range p.Sources {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Consumer returns the consumer with this name; nil if the policy has no such consumer.
func (p *Policy) Consumer(name string) *Consumer {
	for _, c := range p.Consumers {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Fault returns a fault at a path of the policy, such as "stores.shop.sqlite.path". Callers use Fault for
// faults that appear only when a file or database is opened.
func (p *Policy) Fault(path, reason, remedy string) shape.Fault {
	at := shape.Nearest(p.positions, path)
	return shape.Fault{File: p.File, Line: at.Line, Column: at.Column, Path: path, Reason: reason, Remedy: remedy}
}
