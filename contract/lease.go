package contract

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"github.com/semel-go/semel"
)

// Token is the fence of a claim: every write that ends or extends the claim names
// it, and changes nothing once another one stands in the row. It is random and no
// counter, so that a store that was restored, or promoted, hands none out again.
// Zero is no token.
type Token int64

// NewToken returns a token that nobody has.
func NewToken() Token {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // it never fails
		if t := Token(binary.LittleEndian.Uint64(b[:]) >> 1); t != 0 {
			return t
		}
	}
}

// ErrClaimLost: a claim was ended or extended that does not stand any more, since its
// lease ended and another worker, or a person, has the row; nothing was done.
var ErrClaimLost = errors.New("semel: the claim is lost")

// Claim is the right to process one message now: that of the row Number, as long as
// Token stands in it. It lasts for a lease, by the store's clock, which may be
// extended; after that another worker may take the row, with another token.
type Claim struct {
	Number int64
	Token  Token
}

// ClaimOptions say what to claim.
type ClaimOptions struct {
	Consumer string
	// Token is chosen by the caller, anew for each call: by it Leases.Held tells
	// what a call took whose answer was lost.
	Token Token
	// Numbers are the rows that are meant; empty for all.
	Numbers []int64
	// Most is how many rows are claimed at most, Bytes how many bytes their bodies
	// have; one is claimed whatever its size. Zero Bytes set no limit.
	Most  int
	Bytes int64
	Lease time.Duration
	// Ahead, if it is not nil, is called with how many rows were found that had been written
	// while the store's clock was ahead, and by how much the furthest was ahead. Such a row
	// waits for its own wait, or lease, from now.
	Ahead func(rows int, by time.Duration)
}

// ClockSlack is how far in the future a row may have been written before a store takes its clock
// to have been ahead: clocks are put right by little all the time.
const ClockSlack = time.Second

// Claimed is a row that was claimed.
type Claimed struct {
	Claim
	// Row is the row with its message. Its state is StateInProgress.
	Row StoredRow
	// Left is what was left of the lease when the store answered.
	Left time.Duration
	// Suspect says that the lease of a claim has ended, and no handler has come to an
	// end since: who had it may have died of it. A claim of such a row counts as one
	// start, whoever began it.
	Suspect bool
	// Blocked says that the row had waited for an earlier version of its stream for as
	// long as it may.
	Blocked bool
}

// ClaimEnding is how a claim ends.
type ClaimEnding struct {
	Claim
	// Mark, in Ending.Claims, is the index of the claim's mark.
	Mark int
	// Event is RowCompleted, RowStepped, RowFailed, RowParked, RowDeadLettered,
	// RowDiscarded, RowReleased, or RowBlocked. RowBlocked, and RowParked with semel.ReasonGap, are
	// RowReleased if its turn has come and its mark asks.
	Event RowEvent
	// After, with RowFailed and RowBlocked, is in how long the row is due again.
	After  time.Duration
	Reason semel.Reason
	// Version, with RowBlocked, is where it waits; the row keeps it.
	Version Version
	// Lined says that its row stands in a line, which goes on where it ends; see Lines.
	Lined bool
	// Began, with RowReleased, says that a Start of this claim was written down, and
	// that its process lives: it is taken back. Starts of others stay.
	Began bool
	// Ran says that the handler ran: one more attempt.
	Ran bool
	// Call is what is known of a call that was made under the claim; see Calls. What ends
	// claims in a batch ignores it.
	Call CallOutcome
	// Error is a text for people, cut to MaxErrorText; the row keeps its first and
	// its last.
	Error string
	// Steps, with RowStepped and RowCompleted, are all steps that have taken effect with
	// this end, in their order; nil leaves those that the row has. See StepWriter.
	Steps []StepDone
}

// Reclaimed is what became of a claim that was to be taken anew.
type Reclaimed struct {
	// Taken says that the row has the new token; otherwise State is what it is.
	Taken bool
	State RowState
}

// Leases is an optional ability of a store: claims, each with a token and a lease by
// the store's clock. Rows of an inbox are claimed with it; nothing of it needs a
// transaction of the caller's. A claim that was lost is no error: its index is
// returned, and its row is unchanged.
type Leases interface {
	// Claim takes rows that are due, the longest due first, and such in progress
	// whose lease has ended; none that another call holds locked.
	Claim(ctx context.Context, o ClaimOptions) ([]Claimed, error)
	// Held returns what the token holds. It is asked after a Claim whose answer was
	// lost.
	Held(ctx context.Context, consumer string, t Token) ([]Claimed, error)
	// Extend lets the leases end so long after now, if they do not end later
	// already. A row that is locked because its claim is being ended is passed over,
	// and not lost.
	Extend(ctx context.Context, claims []Claim, lease time.Duration) (lost []int, err error)
	// Start writes down that the handlers of these claims are about to run, so that
	// messages that end their process are known by starts without an end. An end of a
	// claim by its token takes that back; a release only its own.
	Start(ctx context.Context, claims []Claim) (lost []int, err error)
	// End ends claims outside of a batch. RowCompleted is for effects that no
	// transaction holds.
	End(ctx context.Context, endings []ClaimEnding) (lost []int, err error)
	// Reclaim gives rows another token, each if it is in progress under one of
	// these: after a commit whose outcome is unknown. It waits for a transaction
	// that is ending one of them, and returns what each row is then.
	Reclaim(ctx context.Context, numbers []int64, from []Token, to Token) ([]Reclaimed, error)
}
