package sqlform

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Revision12 is the meaning of the statements below: which arguments they take,
// what they return, which tables they change. Whoever sends them names it, so
// that a driver of another release than theirs does not compile, instead of
// sending arguments to a statement that means something else.
//
// When a statement changes in such a way: rename this type to the next number,
// follow the compiler into every driver, and mend there what the change asks
// for. A field that is added, removed or renamed needs nothing of it, since the
// compiler finds who used it. TestTheRevisionIsOfTheseStatements notices a text
// that was changed.
type Revision12 struct{}

// Statements are those that every dialect has, each the text in the dialect's
// files under the field's name in words: ConflictRow is "-- name: conflict row".
type Statements struct {
	// What the tables are called, for errors that name them.
	Markers, Inbox string
	// Scopes, positions and what became of a message.
	Scope, NewScope                                      string
	Position, SavePosition, KeepPosition, ForgetPosition string
	Marker                                               string
	// KnownMarkers are those of an id under each source of a consumer; Clock is the store's.
	KnownMarkers, Clock string
	// Upkeep counts what of a consumer wants an eye; Denied are rows whose markers or streams
	// say otherwise, Causes what stands for the causes of intents, Scopes those of a consumer.
	Upkeep, Denied, Causes, Scopes string
	// Control is what operators want of a consumer, which SetPause and SetLimit change;
	// Consumers are the names of all.
	Control, SetPause, SetLimit, Consumers string
	// The schema and the user's own statements.
	Migrations, Migrated, HasMigrations, Applied string
	Unfit, Lint, LintRows                        string
	LockSetup, Setup, SetupKnown                 string
	// Tables of other code.
	OldTable, OldColumns, SeedFirst, SeedNext string
	// A batch: its guard, its marks, and what becomes of them.
	Lock, Guard, Guarded, Unguard string
	Mark, Judge, Trim, Outcome    string
	// TurnMarkers changes markers that have the content that was seen. OtherRows returns the other
	// rows of the identities of some rows.
	TurnMarkers, OtherRows string
	// ReopenRows parks discarded rows.
	ReopenRows string
	// OverRow ends a claim whose marker does not wait for its row.
	OverRow string
	// Rows of the inbox and acts on them. RowColumns are what Rows and the statements
	// of claims return of a row.
	// ConflictRow is Row or Repeat, whichever it has to be.
	// ActedRows locks and returns rows with their markers, for acts; DiscardRows and RecordActs are
	// for several rows, too.
	Row, ConflictRow, Repeat, RowColumns, Rows, ActedRows, DiscardRows, SuppressRows string
	RecordActs, Acts                                                                 string
	// Unsealed are acts that are in no line of the chain, Seal writes a line, SealEnd tells
	// where the chain ends, which SetSealEnd writes. Seals are lines with their acts,
	// AuditedActs acts with the sequences of their lines. Erased are acts of such a result that
	// are on no row.
	Unsealed, Seal, SealEnd, SetSealEnd, Seals, AuditedActs, Erased string
	// Editable is what of a row says whether it may get another body, which EditRow gives it;
	// KeepEdit keeps the one before, and Edits are those that were kept.
	Editable, EditRow, KeepEdit, Edits string
	// CompleteRows and ForgetCalls resolve the calls of rows.
	CompleteRows, ForgetCalls string
	// Claims. CutAhead is for rows that were written while the clock was ahead; LeaseEnds stands
	// in what moves the end of a lease.
	// Owned stands in those that ask whether a claim's row has its marker.
	Held, Look, Extend, Reclaim, CutAhead, LeaseEnds, Owned string
	// ClaimSteps writes the steps of claims, after their end.
	ClaimSteps string
	Pending    string
	// RequeueRows makes rows due. MarkersWait sets the markers of rows to Waiting, with the content of
	// the rows; NewMarkersWait inserts them for conflicts with a former identity.
	RequeueRows, MarkersWait, NewMarkersWait string
	// Caused are the rows that messages caused, EmitRow has one sent again.
	Caused, EmitRow string
	// KeepResult writes what a handler made of a message, Results reads it of several.
	KeepResult, Results string
	// Erasable rows, results and keys are those with something to erase; IdentityRows are all
	// of an identity, CausedRows those of what it caused. LockRow locks a row that may be
	// erased and that nobody else has; EraseRow, EraseEdits, EraseResults and EraseKey erase.
	ErasableRows, ErasableResults, ErasableKeys, IdentityRows, CausedRows string
	LockRow, EraseRow, EraseEdits, EraseResults, EraseKey                 string
	// Vacuum has the database let go of what changed rows have left behind.
	Vacuum string
	// Streams lists them; Stream is one, of which it tells the last version, and locks it.
	Stream, Streams string
	// SkipRows takes rows out of their lines. FirstInLine is the first row of the line that a row is in.
	// SweepLines frees what is first and blocked all the same. DissolveRows takes rows of a consumer out of their
	// lines, some at a time, and DropLines removes the lines that are left.
	SkipRows, FirstInLine, SweepLines, DissolveRows, DropLines string
	// Retention: what is kept of a consumer, and what of it is due. Cutoff stands in
	// Retentions and Advance. Low tells the low-water marks of scopes.
	Retain, ReapPolicy, Progress, Age, ForgetAge, Cutoff, Retentions, Removed, FirstDue, LastDay, MarkerBytes string
	Advance, Low, ReapBodies                                                                                  string
	// Leased keys: Key reads one with the time, NewKey, ChangeKey and RemoveKey write it,
	// ForgetKeys removes some whose time is over.
	// KnownKey reads one for people.
	// AbandonedKeys reads keys with a note whose lease ended without a known outcome.
	Key, NewKey, ChangeKey, RemoveKey, ForgetKeys, KnownKey, AbandonedKeys string
	// Derivations of identities, and who owns a consumer's name.
	Derivations, AddDerivation, RetireDerivation, ForgetFormer string
	Owner, NewOwner, ChangeOwner                               string
	// Generations of a consumer: Working holds the one that a batch works in, and the others
	// change what they are. ForgetRows and those beside it remove what one has kept, some at a
	// time.
	Generations, FirstGeneration, OpenGeneration, TurnGeneration, EndGeneration string
	FenceGeneration, ConfirmFence, LiftFences, UnfenceGenerations, Working      string
	CutFences, CutConfirmed                                                     string
	ForgetRows, ForgetResults, ForgetMarkers, ForgetStreams, ForgetPositions    string
	// NewReplay begins one, OpenReplay finds another that has not ended, LockReplay has one to
	// itself and tells the time, SetReplay changes it, and Replays reads some.
	NewReplay, OpenReplay, LockReplay, SetReplay, Replays string
	// SampleRows and those beside it are what who watches reads: rows of a state, how far
	// reapers are, and replays that have not ended, by consumer.
	SampleRows, SampleReaping, SampleReplays string
}

// Postgres are PostgreSQL's statements.
type Postgres struct {
	Statements
	// Serial takes the consumer's lock; Begin writes settings, guard and marks. BeginNew
	// is Begin for marks that are taken to be new. Writing stands in both.
	Serial, Begin, BeginNew, Writing string
	// OpenSchemas are schemas of the search_path in which others may create objects.
	OpenSchemas string
	// Rights are what a role needs in Semel's schema, and what of it the role lacks.
	Rights string
	// SourceScopes are the scopes of some sources of a consumer that there are, and NewScopes
	// writes those that are missing.
	SourceScopes, NewScopes string
	// Offsets are those of lanes that are known; AdvanceOffsets raises them and tells of
	// each what stood before.
	Offsets, AdvanceOffsets string
	// Receive is Row for messages that were received, any number, as columns.
	Receive string
	// Limit and Unlimited say how long the server lets a statement run.
	Limit, Unlimited string
	// SampleLimit bounds what the server computes for a sample; SampleTables are its
	// estimates of tables, SampleOutcomes of markers by their outcome.
	SampleLimit, SampleTables, SampleOutcomes string
	// Close is Unguard with an error of its own where the guard is gone.
	Close string
	// UnguardKeeping is Unguard, and writes a result with it.
	UnguardKeeping string
	// Claim takes rows. StartClaims and EndClaims return the claims that stand;
	// BeginClaims is Begin and Look where all are claims, and BeginQueuedClaims where
	// nothing is written before the end, either. CloseClaims fails if one does not stand,
	// and so does CloseClaim, of one.
	Claim, StartClaims, EndClaims, BeginClaims, BeginQueuedClaims, CloseClaims, CloseClaim string
	// ClaimEnds stands in EndClaims and CloseClaims, RowEnds in it and in the
	// CloseClaims of an adopted table, CallEnds in it.
	ClaimEnds, RowEnds, CallEnds string
	// StartCalls begins calls outside of a transaction.
	StartCalls string
	// KnowStreams writes streams that are not known, TakeStreams locks them and tells
	// where they are; MoveStreams moves them and frees what waited for it, SkipStream one,
	// over what is missing. StreamFreed and RowFreed stand in both. BeginStreams begins those
	// that have not.
	KnowStreams, TakeStreams, MoveStreams, SkipStream, StreamFreed, RowFreed, BeginStreams string
	// BusyLines tells of which lines something waits. KnowLines gives places in lines and
	// locks them, EnterLines has rows take theirs; LeaveLines locks the lines that rows
	// have left, AdvanceLines frees the next ones.
	BusyLines, KnowLines, EnterLines, LeaveLines, AdvanceLines string
	// LockLines locks the lines of a consumer, before DropLines.
	LockLines string
	// ExecOne goes around a statement that must change one row.
	ExecOne string
	// Patience are the settings of a reaper's transaction, and whether no other reaps for
	// the consumer. Place is where its walk begins, ReapRows and Reap remove some markers
	// between two places with their rows, and Walked notes where it has come to; Due stands
	// in Place and Part, which stands in both.
	Patience, Due, Place, Part, ReapRows, Reap, Walked string
	// SealTurn are the settings of a sealing's transaction, and whether no other seals.
	SealTurn string
	// EraseTurn are the settings of an erasure's transaction.
	EraseTurn string
	// IndexDue, UnindexedDue and UnindexDue are Index, Unindexed and Unindex of the index that
	// Claim uses.
	IndexDue, UnindexedDue, UnindexDue string
	// IndexLow, UnindexedLow and UnindexLow are these of the index of low-water marks.
	IndexLow, UnindexedLow, UnindexLow string
	// Index builds that of the reaper. Unindexed returns a row if it does not stand, and
	// whether it is there all the same; Unindex drops it.
	Index, Unindexed, Unindex string
	// IndexCauses, UnindexedCauses and UnindexCauses are these of the index that Caused
	// goes by.
	IndexCauses, UnindexedCauses, UnindexCauses string
	// Reaper is a procedure that does what a reaper does.
	Reaper string
	// Dated tells of a consumer whether its markers lie in a table of days, and of which
	// kind its ids are, DatedRows of the consumers of rows; LockDated and NewDated make one,
	// where UndatedMarkers finds none in the table of all. Moving is Dated for a consumer
	// whose markers are being moved there.
	Dated, DatedRows, LockDated, NewDated, UndatedMarkers, Moving string
	// What adopting a table asks of it.
	OldKey, OldUnlogged, SetupName string
}

// Adopted are those that a store has in place of the same ones if it marks in a
// table of the user's, too.
type Adopted struct{ Begin, Mark, Judge, Trim, Outcome, Look, CloseClaims string }

// With are the statements with those of an adopted table in their places.
func (p *Postgres) With(a Adopted) *Postgres {
	own := *p
	own.Begin, own.Mark, own.Judge, own.Trim, own.Outcome = a.Begin, a.Mark, a.Judge, a.Trim, a.Outcome
	own.Look, own.CloseClaims = a.Look, a.CloseClaims
	own.BeginClaims, own.BeginQueuedClaims, own.CloseClaim = "", "", "" // what is only shorter has no second form
	return &own
}

// SQLite are SQLite's statements.
type SQLite struct {
	Statements
	ForeignKeys, File string
	// AnyDue and Claimable find the rows that Take claims.
	AnyDue, Claimable, Take string
	// DatedAhead tells what CutAhead would cut.
	DatedAhead string
	// HasClaim, StartClaim, EndClaim and EndMarker are about one claim; StateOf about a
	// row.
	HasClaim, StartClaim, StartCall, EndClaim, EndMarker, StateOf string
	// KnowStream, BeginStream, TakeStream, MoveStream, FreeMarkers and FreeRows are about
	// one stream.
	KnowStream, BeginStream, TakeStream, MoveStream, FreeMarkers, FreeRows string
	// BusyLine, KnowLine and EnterLine are about one line, AdvanceLines and ForgetLines about the lines of
	// rows that have left them.
	BusyLine, KnowLine, EnterLine, AdvanceLines, ForgetLines string
	// SecureDelete tells whether what is deleted is overwritten; Overwrite has it so, and
	// NoOverwrite not. Checkpoint moves the log of writes into the file and empties it.
	SecureDelete, Overwrite, NoOverwrite, Checkpoint string
	// Advanced tells where Advance has come to. NextDue is the next scope that has markers
	// which are due, Part are some of them; RemoveRows, RemoveMarker and RemoveResult remove
	// one with what goes with it.
	Advanced, NextDue, Part, RemoveRows, RemoveMarker, RemoveResult string
	// ForgetEditBodies and ForgetEdits remove what is left of edits whose rows have no body
	// any more, or are gone.
	ForgetEditBodies, ForgetEdits string
}

// begins is what a statement of an SQL file begins with, before its name.
const begins = "-- name: "

// Texts are the statements of SQL files by name; each ends where the next begins.
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

// Fill gives each field of the statements, a pointer to a struct, the text of its
// name. A field without a text and a text without a field are errors.
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

// ByName are the statements, a pointer to a struct, by the names of its fields.
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

// field is the name of a field whose statement is named in words.
func field(name string) string {
	var f strings.Builder
	for word := range strings.FieldsSeq(name) {
		f.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return f.String()
}
