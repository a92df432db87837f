// Package policy reads Semel's policy file: the consumers, their sources and what they do with messages.
//
// Reading is strict. All faults of a file are found before anything is opened, and reported together, each with its
// position, its reason and a remedy: faults of structure, of values, of references between parts, and combinations
// that would lose a message or double an effect. A key that is planned but not available yet is rejected as such,
// never ignored.
//
// One table has everything about a key (see keys_*.go): its type, default, range and text. The parser, the JSON
// Schema and the reference in docs/reference/policy are generated from it.
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

// Policy is a policy file without faults. Its parts are in the file's order.
type Policy struct {
	// Bare is true if there is no file, only the location of a store.
	Bare bool
	// File is the name of the file. Dir is the folder to which its relative paths refer.
	File, Dir string
	Stores    []*Store
	Sources   []*Source
	Consumers []*Consumer
	// Audit applies to all stores.
	Audit Audit
	// Listen configures metrics and health of a run.
	Listen Listen
	// Recorder applies to each run.
	Recorder Recorder
	// Traces configures where spans are sent.
	Traces Traces
	// Warnings are about settings that are allowed but probably not intended.
	Warnings []shape.Fault

	positions map[string]shape.Position
}

// Store is a database with Semel's tables, or a Redis server with leased keys.
type Store struct {
	Name string
	// Exactly one of the three is set.
	SQLite   *SQLite
	Postgres *Postgres
	Redis    *Redis
	// Migrate lets `semel run` create and change Semel's tables.
	Migrate bool
	// Encryption is nil without encryption.
	Encryption *Encryption
	// Setup is the absolute path of a file with the user's own statements, which run once; empty: none.
	Setup string
}

// SQLite is a store in a SQLite file.
type SQLite struct {
	// Path is the absolute path of the database file.
	Path string
	// Prefix is the prefix of the names of Semel's tables.
	Prefix string
}

// Dialect returns the dialect of the consumer's statements in this store.
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
	// Exactly one of the three is set.
	File    *File
	Kafka   *Kafka
	Webhook *Webhook
}

// File is a source of lines.
type File struct {
	// Path is absolute, or Stdin for standard input.
	Path string
	// Format is "cloudevents", "envelope" or "json".
	Format string
	// Follow waits for more at the end of the file.
	Follow bool
	// MaxLine is the maximum length of a message's line in bytes.
	MaxLine int64
}

// Consumer is a named handler with its policy.
type Consumer struct {
	Name string
	// In is the generation that the consumer works in, which is not part of the file; nil if it has none.
	In *consumer.Generation
	// From and Store are names of an existing source and store; see Policy.Source and Policy.Store.
	From, Store string
	// Type is the selector of the message type; empty for the attribute of CloudEvents.
	Type string
	// Filter selects the messages of the consumer. OnFiltered is the result of the others.
	Filter     consumer.Filter
	OnFiltered consumer.OnFiltered
	// Exclusive refuses to start if the name belongs to other handlers.
	Exclusive   bool
	Strategy    Strategy
	Identity    Identity
	Fingerprint Fingerprint
	// Version is set if versions of a stream take effect in order.
	Version *Version
	// Dedup is set if markers are also written to the user's own table.
	Dedup          *Dedup
	OnConflict     consumer.Action
	OnBadIdentity  consumer.Action
	OnPrecondition consumer.Action
	// ReEmitIntents sends the intents of a message again for each of its duplicates.
	ReEmitIntents bool
	// DeadLetter is nil if the policy has none.
	DeadLetter *DeadLetter
	Lanes      consumer.LaneMode
	OnParked   consumer.OnParked
	// ContinueOnFailure keeps the other consumers of the process running when this one fails.
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
	// AckOnReceipt, with strategy inbox, acks a message before its effect.
	AckOnReceipt bool
	// Inbox configures the processing of messages that wait in the store.
	Inbox consumer.InboxPolicy
	// Effect is nil if the policy declares none.
	Effect *Effect
	// Replay says whether messages may be replayed; see MayReplay.
	Replay Replay
	// Alerts are the consumer's own thresholds.
	Alerts Alerts

	// Retention is how long markers are kept. OnExpired is the result of a message that is older.
	Retention consumer.RetentionPolicy
	OnExpired consumer.Action

	// FailOpen applies messages without a key while the store of the keys is down.
	FailOpen bool
}

// Strategy is the mechanism that makes the effect happen once.
type Strategy struct {
	// Marker: a marker commits with the effect.
	Marker bool
	// Inbox: a marker and a row with the message commit with the effect.
	Inbox bool
	// Lease: the message is stored first, and its effect is a call under a claim.
	Lease bool
	// Natural is set if the effect is idempotent by nature.
	Natural *Natural
	// BusinessKey is set if a unique constraint of the effect decides about duplicates, alone or with the marker.
	BusinessKey *BusinessKey
}

// Marks reports whether the strategy writes a marker.
func (s Strategy) Marks() bool { return s.Marker || s.Inbox || s.Lease }

// Natural is the reason why late copies are harmless. Exactly one of the two is set.
type Natural struct {
	// Order is "irrelevant".
	Order string
	// Because is a reason in the author's words.
	Because string
}

// BusinessKey is a unique constraint that decides what is a duplicate.
type BusinessKey struct {
	// Constraint is its name as PostgreSQL reports it; on SQLite "table.column", several joined by ", ".
	Constraint string
}

// Identity has the selectors of a message's identity.
type Identity struct {
	// ID has the selectors of the id; several form a composite key.
	ID []string
	// Source is the selector of the producer's name, or empty.
	Source string
	// Trusted accepts selectors whose names suggest that they are no identity.
	Trusted bool
	// Previous is set while the identity changes.
	Previous *PreviousIdentity
}

// PreviousIdentity has the selectors of a message's previous identity.
type PreviousIdentity struct {
	// ID and Source are as in Identity.
	ID     []string
	Source string
	// TrustUnfingerprinted treats a message as a duplicate if its content cannot be compared.
	TrustUnfingerprinted bool
}

// Version configures versions that take effect in order.
type Version struct {
	// Stream has the selectors of the stream, Number that of the version.
	Stream []string
	Number string
	Start  VersionStart
	// GapDeadline is how long a version waits for its predecessor.
	GapDeadline time.Duration
	// GapCap is how far ahead of its stream a version may wait; 0: no limit.
	GapCap int64
	// Missing is the result of a message without a version.
	Missing consumer.Action

	onGap string
}

// VersionStart is the first version of a stream; FirstSeen: the first version that arrives.
type VersionStart struct {
	Number    int64
	FirstSeen bool
}

// Dedup is the user's own table of processed messages, in which Semel also writes markers.
type Dedup struct {
	Table   string
	Columns DedupColumns
	// Values are the values of further columns.
	Values map[string]string
}

// DedupColumns are the columns of that table. All except ID may be empty.
type DedupColumns struct{ ID, Consumer, Source, ProcessedAt string }

// Fingerprint configures how content is compared.
type Fingerprint struct {
	// None: content is not compared.
	None bool
	// Selectors are the parts that form the content; empty: the body.
	Selectors []string
}

// Handler is what a consumer does with a message. Exactly one of the fields is set.
type Handler struct {
	// SQL handles every message.
	SQL *SQL
	// Types has a handler for each type; a message of another type ends with the reason "unknown type".
	Types []TypedHandler
	// HTTP calls an endpoint for every message.
	HTTP *HTTP
	// Kafka publishes every message.
	Kafka *Publish
}

// TypedHandler handles the messages of a type; see consumer.ByType.
type TypedHandler struct {
	// Type is a type, optionally with @ and a schema version.
	Type string
	SQL  *SQL
}

// SQL is a handler with SQL statements.
type SQL struct {
	// Params are the named parameters, in the file's order.
	Params []Param
	// Statements run in this order in the message's transaction.
	Statements []Statement
	// Intents are written after the statements, in the same transaction.
	Intents []SQLIntent
	// Steps replace Statements and Intents; each has a transaction of its own.
	Steps []SQLStep
}

// Param binds the value of a selector to a name.
type Param struct {
	Name, Selector string
	// Type is the required type of the value; empty if the file has none.
	Type sqlhandler.ParamType
}

// Statement is one SQL statement.
type Statement struct {
	// SQL is the text, including the text generated from Upsert.
	SQL string
	// Upsert, if not nil, is the upsert from which SQL was generated.
	Upsert *upsert.Newer
	// Rows, if not nil, is the number of rows that the statement must change.
	Rows *int64
	// Otherwise is "park", "discard" or "fail": the result of a message whose statement changed another number of
	// rows.
	Otherwise string
}

// Load reads the policy file at path. env returns environment variables, like os.LookupEnv. If the file has faults,
// the policy is nil; faults are sorted by position.
func Load(path string, env func(string) (string, bool)) (*Policy, []shape.Fault) {
	data, err := shape.ReadFile(path)
	if err != nil {
		return nil, []shape.Fault{{File: path, Line: 1, Column: 1, Kind: shape.Unreadable, Reason: shape.ReadReason(err),
			Remedy: "name a readable policy file with --config"}}
	}
	return Parse(path, data, env)
}

// Parse is Load for a text. Relative paths in it refer to the folder of name.
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

// Store returns the store with this name; nil if there is none.
func (p *Policy) Store(name string) *Store {
	for _, s := range p.Stores {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Source returns the source with this name; nil if there is none.
func (p *Policy) Source(name string) *Source {
	for _, s := range p.Sources {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Consumer returns the consumer with this name; nil if there is none.
func (p *Policy) Consumer(name string) *Consumer {
	for _, c := range p.Consumers {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Fault returns a fault at a path of the policy ("stores.shop.sqlite.path"), for faults that are found only when
// files and databases are opened.
func (p *Policy) Fault(path, reason, remedy string) shape.Fault {
	at := shape.Nearest(p.positions, path)
	return shape.Fault{File: p.File, Line: at.Line, Column: at.Column, Path: path, Reason: reason, Remedy: remedy}
}
