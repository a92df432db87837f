package sqlform

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Revision12 is a number for the meaning of the statements in this file: their arguments, their results and the tables
// that they change. Every driver names the type, so that a driver of another release does not compile and cannot send
// arguments to a statement with another meaning.
//
// When the meaning of a statement changes, rename Revision12 to the next number, and adapt each driver that no longer
// compiles. If a field is added, removed or renamed, no new number is needed, because the compiler finds all uses of
// the field. TestTheRevisionIsOfTheseStatements detects changed texts.
type Revision12 struct{}

// Statements contains the statements that every dialect has. In the SQL files of the dialect, the name of a statement
// is the name of its field in words: the field ConflictRow is "-- name: conflict row".
type Statements struct {
	// The names of two tables in the texts of errors: the markers and the inbox.
	Markers, Inbox string
	// Statements about the numbers of sources (scopes), positions of sources, and markers.
	Scope, NewScope                                      string
	Position, SavePosition, KeepPosition, ForgetPosition string
	Marker                                               string
	// KnownMarkers reads the markers of an id for each source of a consumer. Clock reads the store's clock.
	KnownMarkers, Clock string
	// Upkeep counts the records of a consumer that need attention. Denied reads rows that contradict their markers or
	// streams. Causes reads the causes of intents. Scopes reads the numbers of a consumer's sources.
	Upkeep, Denied, Causes, Scopes string
	// Control reads the operators' settings of a consumer. SetPause and SetLimit change the operators' settings.
	// Consumers reads the names of all consumers.
	Control, SetPause, SetLimit, Consumers string
	// Statements about the schema, and the user's own statements.
	Migrations, Migrated, HasMigrations, Applied string
	Unfit, Lint, LintRows                        string
	LockSetup, Setup, SetupKnown                 string
	// Statements about the user's own tables of markers.
	OldTable, OldColumns, SeedFirst, SeedNext string
	// Statements of a batch, for its guard and its markers.
	Lock, Guard, Guarded, Unguard string
	Mark, Judge, Trim, Outcome    string
	// TurnMarkers changes markers that still have the given content. OtherRows reads, for some rows, the other rows of
	// the same identities.
	TurnMarkers, OtherRows string
	// ReopenRows parks discarded rows.
	ReopenRows string
	// OverRow ends a claim whose row does not own the marker of its identity.
	OverRow string
	// Statements about rows of the inbox, and operators' changes to rows. RowColumns is the list of columns that Rows
	// and the statements of claims return. ConflictRow writes a row as Row does or, if the row exists, as Repeat does.
	// ActedRows locks rows and returns them with their markers, for an operator's change. RecordActs writes the audit
	// records of several changes. DiscardRows discards several rows.
	Row, ConflictRow, Repeat, RowColumns, Rows, ActedRows, DiscardRows, SuppressRows string
	RecordActs, Acts                                                                 string
	// Unsealed reads audit records (acts) that are not in the audit chain. Seal writes a line of the chain. SealEnd
	// reads the description of the last line, and SetSealEnd writes this description. Seals reads lines with their
	// audit records. AuditedActs reads audit records with the sequences of their lines. Erased reads the audit records
	// that belong to no row and have a given result.
	Unsealed, Seal, SealEnd, SetSealEnd, Seals, AuditedActs, Erased string
	// Editable reads the data that decide whether the body of a row may be replaced. EditRow replaces the
	// body. RetypeRow replaces the type. KeepEdit stores the body before the edit. Edits reads the stored edits.
	Editable, EditRow, RetypeRow, KeepEdit, Edits string
	// CompleteRows and ForgetCalls record the outcome of rows with calls of unknown outcome.
	CompleteRows, ForgetCalls string
	// Statements about claims. CutAhead changes rows that were written while the store's clock was ahead. LeaseEnds is
	// a part of the statements that set the end of a lease. Owned is a part of the statements that check whether the
	// row of a claim owns its marker.
	Held, Look, Extend, Reclaim, CutAhead, LeaseEnds, Owned string
	// ClaimSteps writes the steps of claims, after the claims have ended.
	ClaimSteps string
	Pending    string
	// RequeueRows makes rows due. MarkersWait sets the markers of rows to Waiting, with the content of the rows.
	// NewMarkersWait inserts markers with the outcome Waiting for conflicts with a previous identity.
	RequeueRows, MarkersWait, NewMarkersWait string
	// Caused reads the rows that messages have caused. EmitRow makes a caused row due again.
	Caused, EmitRow string
	// KeepResult writes the result of a message. Results reads the results of several messages.
	KeepResult, Results string
	// ErasableRows, ErasableResults and ErasableKeys find data to erase. IdentityRows reads all rows of an identity.
	// CausedRows reads the rows that the identity has caused. LockRow locks a row that may be erased, unless another
	// transaction has locked the row. EraseRow, EraseEdits, EraseResults and EraseKey erase data.
	ErasableRows, ErasableResults, ErasableKeys, IdentityRows, CausedRows string
	LockRow, EraseRow, EraseEdits, EraseResults, EraseKey                 string
	// Vacuum removes old versions of changed rows from the database files.
	Vacuum string
	// Streams lists streams. Stream locks a stream and returns its last version.
	Stream, Streams string
	// A line is the queue of a key or lane in the inbox. SkipRows removes rows from their lines. FirstInLine reads the
	// first row in the line of a given row. SweepLines unblocks rows that are blocked although they are the first of
	// their line. DissolveRows removes some rows of a consumer from their lines. DropLines removes the remaining lines.
	SkipRows, FirstInLine, SweepLines, DissolveRows, DropLines string
	// Statements about the retention: the stored policies of consumers, and the data that are due for removal. Cutoff
	// is not a whole statement but an expression in Retentions and Advance. Low reads the low-water marks of sources.
	Retain, ReapPolicy, Progress, Age, ForgetAge, Cutoff, Retentions, Removed, FirstDue, LastDay, MarkerBytes string
	Advance, Low, ReapBodies                                                                                  string
	// Statements about leased keys. Key reads a key together with the current time. NewKey, ChangeKey and RemoveKey
	// write a key. ForgetKeys removes some expired keys. KnownKey reads a key for display. AbandonedKeys reads keys
	// with a stored request whose lease ended without a known outcome.
	Key, NewKey, ChangeKey, RemoveKey, ForgetKeys, KnownKey, AbandonedKeys string
	// Statements about derivations (rules that form identities), and about the owner of a consumer's name.
	Derivations, AddDerivation, RetireDerivation, ForgetFormer string
	Owner, NewOwner, ChangeOwner                               string
	// Statements about the generations of a consumer. Working locks the generation of a batch. ForgetRows and the
	// statements after it each remove some records of a generation. The remaining statements change the state of
	// generations.
	Generations, FirstGeneration, OpenGeneration, TurnGeneration, EndGeneration string
	FenceGeneration, ConfirmFence, LiftFences, UnfenceGenerations, Working      string
	CutFences, CutConfirmed                                                     string
	ForgetRows, ForgetResults, ForgetMarkers, ForgetStreams, ForgetPositions    string
	// NewReplay begins a replay. OpenReplay finds another replay that has not ended. LockReplay locks a
	// replay and returns the time. SetReplay changes a replay. Replays reads several replays.
	NewReplay, OpenReplay, LockReplay, SetReplay, Replays string
	// SampleRows, SampleReaping and SampleReplays are for monitoring. For each consumer, they read the rows by state,
	// the progress of the removal of markers, and open replays.
	SampleRows, SampleReaping, SampleReplays string
}

// Postgres contains the statements of PostgreSQL.
type Postgres struct {
	Statements
	// Serial takes the consumer's lock. Begin writes settings, guard and markers. BeginNew does the same as Begin, for
	// markers that are assumed to be new. Writing is a part of Begin and BeginNew.
	Serial, Begin, BeginNew, Writing string
	// OpenSchemas reads those schemas of the search_path in which other roles may create objects.
	OpenSchemas string
	// Rights reads the privileges that a role needs in Semel's schema, and the privileges that are missing.
	Rights string
	// SourceScopes reads the existing numbers of some sources of a consumer. NewScopes writes the missing
	// numbers.
	SourceScopes, NewScopes string
	// Offsets reads the offsets of known lanes. AdvanceOffsets raises the offsets and returns the previous
	// offsets.
	Offsets, AdvanceOffsets string
	// Receive writes the rows of any number of received messages. The arguments of Receive are columns.
	Receive string
	// Limit and Unlimited set how long a statement may run on the server.
	Limit, Unlimited string
	// SampleLimit limits the work of the server for a sample. SampleTables reads the server's
	// estimates of the sizes of tables. SampleOutcomes reads the server's estimates of the
	// numbers of markers, by outcome.
	SampleLimit, SampleTables, SampleOutcomes string
	// Close does the same as Unguard, with a specific error if the guard is missing.
	Close string
	// UnguardKeeping does the same as Unguard, and also writes a result.
	UnguardKeeping string
	// Claim claims rows. StartClaims and EndClaims return the valid claims. BeginClaims does what Begin and Look do,
	// for a batch that consists only of claimed rows. BeginQueuedClaims does what BeginClaims does, for a batch that
	// writes nothing before its end. CloseClaims ends claims, and fails if a claim is not valid. CloseClaim ends one
	// claim, and fails if the claim is not valid.
	Claim, StartClaims, EndClaims, BeginClaims, BeginQueuedClaims, CloseClaims, CloseClaim string
	// ClaimEnds is a part of EndClaims and CloseClaims. RowEnds is a part of ClaimEnds, and of the CloseClaims for a
	// user's own table of markers. CallEnds is a part of RowEnds.
	ClaimEnds, RowEnds, CallEnds string
	// StartCalls begins calls outside of a transaction.
	StartCalls string
	// KnowStreams inserts unknown streams. TakeStreams locks streams and returns their positions. MoveStreams
	// advances streams and unblocks the rows that waited. SkipStream advances one stream over missing
	// versions and unblocks the rows that waited. StreamFreed and RowFreed are parts of MoveStreams and
	// SkipStream. BeginStreams starts streams that have not started.
	KnowStreams, TakeStreams, MoveStreams, SkipStream, StreamFreed, RowFreed, BeginStreams string
	// A line is the queue of a key or lane in the inbox. BusyLines reads the lines in which rows wait. KnowLines
	// assigns positions in lines and locks the lines. EnterLines writes the positions of rows. LeaveLines locks the
	// lines from which rows were removed. AdvanceLines unblocks the next rows of the locked lines.
	BusyLines, KnowLines, EnterLines, LeaveLines, AdvanceLines string
	// LockLines locks the lines (queues of keys or lanes) of a consumer, before DropLines.
	LockLines string
	// ExecOne wraps a statement that must change exactly one row.
	ExecOne string
	// Patience starts a transaction that removes old markers, and returns whether no other such transaction runs for
	// the consumer. Place reads the position at which the scan of markers begins. ReapRows and Reap remove some markers
	// between two positions, with their rows. Walked stores the new position. Due is a part of Place and Part. Part is
	// a part of ReapRows and Reap.
	Patience, Due, Place, Part, ReapRows, Reap, Walked string
	// SealTurn starts a transaction that adds lines to the audit chain, and returns whether no other process does so.
	SealTurn string
	// EraseTurn starts an erasure transaction.
	EraseTurn string
	// IndexDue, UnindexedDue and UnindexDue do the same as Index, Unindexed and Unindex, for the index that Claim uses.
	IndexDue, UnindexedDue, UnindexDue string
	// IndexLow, UnindexedLow and UnindexLow do the same as Index, Unindexed and Unindex, for the index of low-water
	// marks.
	IndexLow, UnindexedLow, UnindexLow string
	// Index creates the index for the removal of old markers. If the index cannot be used, Unindexed returns a row that
	// says whether the index exists. Unindex drops the index.
	Index, Unindexed, Unindex string
	// IndexCauses, UnindexedCauses and UnindexCauses do the same as Index, Unindexed and Unindex, for the index that
	// Caused uses.
	IndexCauses, UnindexedCauses, UnindexCauses string
	// Reaper creates a procedure that removes old markers.
	Reaper string
	// Dated returns whether the markers of a consumer are in a table with daily partitions, and the kind of the ids.
	// DatedRows returns the same for the consumers of rows. LockDated and NewDated create a table with daily
	// partitions. UndatedMarkers checks that the table that all consumers share has no markers of the consumer. Moving
	// does the same as Dated, for a consumer whose markers are being moved.
	Dated, DatedRows, LockDated, NewDated, UndatedMarkers, Moving string
	// Statements that check a user's own table before Semel writes markers to it.
	OldKey, OldUnlogged, SetupName string
}

// Adopted contains the statements that replace the usual statements if the store also writes markers into a
// table of the user.
type Adopted struct{ Begin, Mark, Judge, Trim, Outcome, Look, CloseClaims string }

// With returns a copy of p for a user's own table of markers. In the copy, the statements in the parameter a replace
// the usual statements.
func (p *Postgres) With(a Adopted) *Postgres {
	own := *p
	own.Begin, own.Mark, own.Judge, own.Trim, own.Outcome = a.Begin, a.Mark, a.Judge, a.Trim, a.Outcome
	own.Look, own.CloseClaims = a.Look, a.CloseClaims
	own.BeginClaims, own.BeginQueuedClaims, own.CloseClaim = "", "", "" // shortened forms of other statements
	return &own
}

// SQLite contains the statements of SQLite.
type SQLite struct {
	Statements
	ForeignKeys, File string
	// AnyDue and Claimable find the rows that Take claims.
	AnyDue, Claimable, Take string
	// DatedAhead reads the rows that CutAhead would change.
	DatedAhead string
	// HasClaim, StartClaim, EndClaim and EndMarker are for a single claim. StateOf reads the state of a row.
	HasClaim, StartClaim, StartCall, EndClaim, EndMarker, StateOf string
	// KnowStream, BeginStream, TakeStream, MoveStream, FreeMarkers and FreeRows are for a single stream.
	KnowStream, BeginStream, TakeStream, MoveStream, FreeMarkers, FreeRows string
	// BusyLine, KnowLine and EnterLine are for a single line (the queue of a key or lane). AdvanceLines and ForgetLines
	// are for the lines from which rows were removed.
	BusyLine, KnowLine, EnterLine, AdvanceLines, ForgetLines string
	// SecureDelete reads whether SQLite overwrites deleted data. Overwrite and NoOverwrite switch the
	// overwriting on and off. Checkpoint moves the write-ahead log into the database file and empties the
	// log.
	SecureDelete, Overwrite, NoOverwrite, Checkpoint string
	// Advanced reads the progress of Advance. NextDue reads the next source with markers that are due for removal. Part
	// reads some of the markers of the source. RemoveRows, RemoveMarker and RemoveResult remove one marker and its
	// data.
	Advanced, NextDue, Part, RemoveRows, RemoveMarker, RemoveResult string
	// ForgetEditBodies removes the bodies of edits whose row has no body any more. ForgetEdits removes the
	// edits of rows that do not exist.
	ForgetEditBodies, ForgetEdits string
}

// begins is the text before the name of each statement in an SQL file.
const begins = "-- name: "

// Texts returns the statements of SQL files by name. A statement ends where the next statement begins.
func Texts(files ...string) (map[string]string, error) {
	found := map[string]string{}
	for _, text := range files {
		_, all, _ := strings.Cut(text, begins)
		for section := range strings.SplitSeq(all, begins) {
			name, body, _ := strings.Cut(section, "\n")
			if _, twice := found[name]; twice {
				return nil, fmt.Errorf("two statements are named %q", name)
			}
			found[name] = strings.TrimSuffix(strings.TrimSpace(body), ";")
		}
	}
	return found, nil
}

// Fill sets each field of a struct to the text with the name of the field. The parameter statements is a pointer to the
// struct. A field without a text, and a text without a field, are errors.
func Fill(statements any, texts map[string]string) error {
	left := make(map[string]string, len(texts))
	for name, text := range texts {
		left[field(name)] = text
	}
	var faults []error
	v := reflect.ValueOf(statements).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if f.Anonymous {
			continue
		}
		if left[f.Name] == "" {
			faults = append(faults, fmt.Errorf("the statement %s of %T has no text: write it under \"-- name: …\" into the .sql files of its dialect", f.Name, statements))
		}
		v.FieldByIndex(f.Index).SetString(left[f.Name])
		delete(left, f.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(left)) {
		faults = append(faults, fmt.Errorf("the text %s belongs to no statement of %T", name, statements))
	}
	return errors.Join(faults...)
}

// ByName returns statements by the names of their fields. The parameter statements is a pointer to a struct.
func ByName(statements any) map[string]string {
	all := map[string]string{}
	v := reflect.ValueOf(statements).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		if !f.Anonymous {
			all[f.Name] = v.FieldByIndex(f.Index).String()
		}
	}
	return all
}

// field converts the name of a statement in words to the name of its field.
func field(name string) string {
	var f strings.Builder
	for word := range strings.FieldsSeq(name) {
		f.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return f.String()
}
