// Package policy reads Semel's policy file: which consumers there are, where
// their messages come from, and what each does with them.
//
// Reading is strict. Every fault of a file is found before anything is opened,
// and all are reported at once, each with its place, its reason and a remedy:
// the shape, the values, the references between parts, and combinations that
// would lose a message or double an effect. A key that Semel will have and has
// not yet is refused as such, never ignored.
//
// All that is known of a key stands in one table (see keys_*.go): its type,
// default, range and text. The parser, the JSON Schema and the reference in
// docs/reference/policy come from it.
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
	// Bare says that there is no file: only the place of a store was given.
	Bare bool
	// File is the name the policy was read under; Dir the folder that its
	// relative paths start from.
	File, Dir string
	Stores    []*Store
	Sources   []*Source
	Consumers []*Consumer
	// Audit is of all stores.
	Audit Audit
	// Listen is where a run tells of itself.
	Listen Listen
	// Recorder is of each run.
	Recorder Recorder
	// Traces say where spans are sent.
	Traces Traces
	// Warnings are about what is allowed and probably not meant.
	Warnings []shape.Fault

	positions map[string]shape.Position
}

// Store is a database with Semel's tables, or keeps leased keys.
type Store struct {
	Name string
	// One of the three is set.
	SQLite   *SQLite
	Postgres *Postgres
	Redis    *Redis
	// Migrate says that run may create and change Semel's tables.
	Migrate bool
	// Encryption is nil where nothing is encrypted.
	Encryption *Encryption
	// Setup is a file of the user's own statements to run once, or empty.
	// Its path is resolved.
	Setup string
}

// SQLite is a store in a SQLite file.
type SQLite struct {
	// Path is of the database file, resolved.
	Path string
	// Prefix begins the names of Semel's tables.
	Prefix string
}

// Dialect is that of the consumer's statements in this store.
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

// Source is where messages come from.
type Source struct {
	Name string
	// One of the three is set.
	File    *File
	Kafka   *Kafka
	Webhook *Webhook
}

// File is a source of lines.
type File struct {
	// Path is resolved; Stdin for standard input.
	Path string
	// Format is "cloudevents", "envelope" or "json".
	Format string
	// Follow waits for more at the end of the file.
	Follow bool
	// MaxLine is the longest line in bytes that is read as a message.
	MaxLine int64
}

// Consumer is a named handler with its policy.
type Consumer struct {
	Name string
	// In is the generation that it works in, which no file says; nil where it has none.
	In *consumer.Generation
	// From and Store name a source and a store that exist; see Policy.Source and Policy.Store.
	From, Store string
	// Type is the selector of a message's type, empty for the attribute of CloudEvents.
	Type string
	// Filter selects the messages of the consumer. OnFiltered ends the others.
	Filter     consumer.Filter
	OnFiltered consumer.OnFiltered
	// Exclusive refuses to start beside another set of handlers of the same name.
	Exclusive   bool
	Strategy    Strategy
	Identity    Identity
	Fingerprint Fingerprint
	// Version is set when versions of a stream take effect in their order.
	Version *Version
	// Dedup is set when a table of the user's is marked in, too.
	Dedup          *Dedup
	OnConflict     consumer.Action
	OnBadIdentity  consumer.Action
	OnPrecondition consumer.Action
	// ReEmitIntents: a duplicate has the intents of its message sent again.
	ReEmitIntents bool
	// DeadLetter is nil where the policy names none.
	DeadLetter *DeadLetter
	Lanes      consumer.LaneMode
	OnParked   consumer.OnParked
	// ContinueOnFailure keeps the other consumers of the process when this one fails.
	ContinueOnFailure bool
	Timeout           time.Duration
	Workers           int
	Batch             consumer.BatchLimits
	MaxInMemoryWait   time.Duration
	MaxUnacked        source.Bound
	// MaxBody is the longest body in bytes that is processed.
	MaxBody int64
	Drain   time.Duration
	Handler Handler
	Retry   consumer.RetryPolicy
	// AckOnReceipt, with strategy inbox: the broker is settled before the effect.
	AckOnReceipt bool
	// Inbox says how messages that wait in the store are worked on.
	Inbox consumer.InboxPolicy
	// Effect is nil where the policy does not say what kind it is.
	Effect *Effect
	// Replay says whether messages may be replayed; see MayReplay.
	Replay Replay
	// Alerts are what somebody wants to be told of.
	Alerts Alerts

	// Retention is how long identities are remembered. OnExpired ends a message that is older.
	Retention consumer.RetentionPolicy
	OnExpired consumer.Action

	// FailOpen: messages are applied without a key while the store of the keys is down.
	FailOpen bool
}

// Strategy says what makes the effect happen once.
type Strategy struct {
	// Marker: a marker commits with the effect.
	Marker bool
	// Inbox: a marker and a row with the message do.
	Inbox bool
	// Lease: the message is received, and its effect is a call under a claim.
	Lease bool
	// Natural is set when the effect is idempotent by nature.
	Natural *Natural
	// BusinessKey is set when a unique constraint of the effect decides,
	// alone or beside the marker.
	BusinessKey *BusinessKey
}

// Marks reports whether a marker is written.
func (s Strategy) Marks() bool { return s.Marker || s.Inbox || s.Lease }

// Natural says why late copies do no harm. One of the two is set.
type Natural struct {
	// Order is "irrelevant".
	Order string
	// Because is a reason in the author's words.
	Because string
}

// BusinessKey is a unique constraint that decides what is a duplicate.
type BusinessKey struct {
	// Constraint is its name as PostgreSQL reports it; on SQLite
	// "table.column", several joined by ", ".
	Constraint string
}

// Identity says where a message's identity is found.
type Identity struct {
	// ID are the selectors of the id; several make a business key.
	ID []string
	// Source is the selector of the producer's name, or empty.
	Source string
	// Trusted lets selectors pass whose names say that they are no identity.
	Trusted bool
	// Previous is set while the identity changes.
	Previous *PreviousIdentity
}

// PreviousIdentity says where a message's identity was found before.
type PreviousIdentity struct {
	// ID and Source are as in Identity.
	ID     []string
	Source string
	// TrustUnfingerprinted: what cannot be compared is a duplicate.
	TrustUnfingerprinted bool
}

// Version says how versions of a stream take effect in their order.
type Version struct {
	// Stream are the selectors of the stream, Number is that of the version.
	Stream []string
	Number string
	Start  VersionStart
	// GapDeadline is how long a version waits for the one before it.
	GapDeadline time.Duration
	// GapCap is how many versions ahead of its stream's next one may wait; 0: any.
	GapCap int64
	// Missing ends a message that has none.
	Missing consumer.Action

	onGap string
}

// VersionStart is the version that a stream begins with; FirstSeen: whichever is met
// first.
type VersionStart struct {
	Number    int64
	FirstSeen bool
}

// Dedup is an adopted table of processed messages.
type Dedup struct {
	Table   string
	Columns DedupColumns
	// Values are what further columns get.
	Values map[string]string
}

// DedupColumns are the columns of an adopted table; all but ID may be empty.
type DedupColumns struct{ ID, Consumer, Source, ProcessedAt string }

// Fingerprint says how content is recognised.
type Fingerprint struct {
	// None: not at all.
	None bool
	// Selectors name the parts that make the content; none means the body.
	Selectors []string
}

// Handler is what a consumer does with a message. One of them is set.
type Handler struct {
	// SQL handles every message.
	SQL *SQL
	// Types handle each the messages of a type; what has none of these ends as
	// reason "unknown_type".
	Types []TypedHandler
	// HTTP calls an endpoint for every message.
	HTTP *HTTP
	// Kafka publishes every message.
	Kafka *Publish
}

// TypedHandler handles the messages of a type, as consumer.ByType chooses.
type TypedHandler struct {
	// Type is a type, or a type and a schema version with @ between.
	Type string
	SQL  *SQL
}

// SQL is a handler of statements.
type SQL struct {
	// Params are the named parameters, in the file's order.
	Params []Param
	// Statements run in this order in the message's transaction.
	Statements []Statement
	// Intents are written down after them, in it.
	Intents []SQLIntent
	// Steps stand in place of both, each with a transaction of its own.
	Steps []SQLStep
}

// Param binds the value at a selector to a name.
type Param struct {
	Name, Selector string
	// Type is what the value must be; empty where the file names none.
	Type sqlhandler.ParamType
}

// Statement is one SQL statement.
type Statement struct {
	// SQL is its text, also that of Upsert.
	SQL string
	// Upsert, when not nil, is what SQL was made of.
	Upsert *upsert.Newer
	// Rows, when not nil, is how many rows it must change.
	Rows *int64
	// Otherwise is "park", "discard" or "fail": what becomes of a message
	// whose statement changed another number.
	Otherwise string
}

// Load reads the policy file at path. env reads the environment, as
// os.LookupEnv does. The policy is nil if there are faults; they are sorted by
// their place.
func Load(path string, env func(string) (string, bool)) (*Policy, []shape.Fault) {
	data, err := shape.ReadFile(path)
	if err != nil {
		return nil, []shape.Fault{{File: path, Line: 1, Column: 1, Kind: shape.Unreadable, Reason: shape.ReadReason(err),
			Remedy: "name a readable policy file with --config"}}
	}
	return Parse(path, data, env)
}

// Parse is Load for a text that is at hand. Relative paths in it start from
// the folder of name.
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

// Store returns the store of this name, nil if there is none.
func (p *Policy) Store(name string) *Store {
	for _, s := range p.Stores {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Source returns the source of this name, nil if there is none.
func (p *Policy) Source(name string) *Source {
	for _, s := range p.Sources {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Consumer returns the consumer of this name, nil if there is none.
func (p *Policy) Consumer(name string) *Consumer {
	for _, c := range p.Consumers {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Fault makes a fault at a path of the policy ("stores.shop.sqlite.path"), for
// what is found only later, when files and databases are opened.
func (p *Policy) Fault(path, reason, remedy string) shape.Fault {
	at := shape.Nearest(p.positions, path)
	return shape.Fault{File: p.File, Line: at.Line, Column: at.Column, Path: path, Reason: reason, Remedy: remedy}
}
