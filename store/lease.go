package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/versions"
)

// Token is the fencing token of a claim. Every write that ends or extends the claim checks the token, and changes
// nothing if the row has another token. Tokens are random numbers. If tokens were counted, a store that was restored
// from a backup or failed over could issue a token twice. Zero is not a token.
type Token int64

// NewToken returns a new random token.
func NewToken() Token {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // rand.Read never returns an error
		if t := Token(binary.LittleEndian.Uint64(b[:]) >> 1); t != 0 {
			return t
		}
	}
}

// ErrClaimLost is the error for ending or extending a claim that is no longer valid: its lease ended, and
// another worker or an operator has the row. Nothing was changed.
var ErrClaimLost = errors.New("semel: the claim is lost")

// Claim is the exclusive right to process the message of row Number while the row has the token Token. A claim lasts
// for a lease, measured by the store's clock. A lease can be extended. After the lease, another worker may claim the
// row with another token.
type Claim struct {
	Number int64
	Token  Token
}

// ClaimOptions are the options of Leases.Claim.
type ClaimOptions struct {
	Consumer string
	// Token is the token of the new claims. Each call needs a new token. If the response of a call is lost,
	// Leases.Held returns the rows that the call claimed.
	Token Token
	// Numbers contains the numbers of the rows that may be claimed; empty means all rows.
	Numbers []int64
	// Most is the largest number of rows. Bytes is the largest total size of their bodies; zero means no
	// limit. At least one row is claimed, whatever its size is.
	Most  int
	Bytes int64
	Lease time.Duration
	// Ahead, if not nil, is called if Claim has found rows that were written while the store's clock was more than a
	// second ahead. The parameter rows is the number of these rows, and the parameter by is how far the clock was ahead
	// at most. The delay or lease of a row that was written ahead of the clock starts again at the current time.
	Ahead func(rows int, by time.Duration)
}

// Claimed is a claimed row.
type Claimed struct {
	Claim
	// Row is the row with its message. Its state is StateInProgress.
	Row StoredRow
	// Left is the remaining time of the lease at the time of the store's response.
	Left time.Duration
	// Suspect is true if the lease of an earlier claim ended and no handler has finished since. The message of a
	// suspect row may have crashed its process. A claim of a suspect row counts as one start.
	Suspect bool
	// Blocked is true if the row has waited for an earlier version of its stream for the longest allowed time.
	Blocked bool
}

// ClaimEnding describes how a claim ends.
type ClaimEnding struct {
	Claim
	// Mark is the index of the claim's mark, if the ending is in Ending.Claims.
	Mark int
	// State is the state of the row after its claim: any state except StateInProgress. StateReceived releases the claim
	// without an attempt, unless Stepped is set. StateBlocked, and StateParked with semel.ReasonGap, release the claim,
	// too, if the earlier versions have taken effect in the meantime and the mark asks (Mark.Asks).
	State RowState
	// Stepped is used with StateReceived only: a step is committed, and the next step can run now. Attempts are
	// counted from zero again.
	Stepped bool
	// The field After is used with StateFailedRetryable and StateBlocked: the delay until the row can be claimed again.
	After  time.Duration
	Reason semel.Reason
	// Version is used with StateBlocked: the version with which the row waits. The row stores this version.
	Version versions.Position
	// Lined is true if the row is in a line (a queue of messages that are processed in order). When a row in a line
	// ends, the next row of the line is unblocked. Only Semel's own stores have lines.
	Lined bool
	// Began is used when a claim is given back without an attempt; see Released. If Began is true, the recorded Start
	// of this claim is removed, because the process of the claim is alive. Starts of other claims stay.
	Began bool
	// Ran is true if the handler ran, which counts as an attempt.
	Ran bool
	// Call is the outcome of an external call under the claim; see CallOutcome. A batch ignores Call.
	Call CallOutcome
	// Error is an error message, truncated to MaxErrorText. The row stores its first and its last error
	// message.
	Error string
	// Steps is used with Stepped and with StateCompleted: all steps that are complete with this commit, in order. If
	// Steps is nil, the row's steps stay unchanged. See Limits.StepOutput.
	Steps []StepDone
}

// Released reports whether the claim ends without an attempt: the worker gives the row back.
func (e *ClaimEnding) Released() bool { return e.State == StateReceived && !e.Stepped }

// Reclaimed is the result of Leases.Reclaim for one row.
type Reclaimed struct {
	// Taken is true if the row now has the new token. If Taken is false, State is the state of the row.
	Taken bool
	State RowState
}

// Leases is implemented by a store with an inbox whose rows can be claimed. Each claim has a token, and a lease by the
// store's clock. The methods use their own transactions. For a lost claim, a method returns the index of the claim,
// leaves the row unchanged, and returns no error.
type Leases interface {
	// Claim claims rows that are due, the longest waiting rows first, and rows in progress whose lease has ended. Claim
	// skips rows that another call has locked.
	Claim(ctx context.Context, o ClaimOptions) ([]Claimed, error)
	// Held returns the rows that are claimed with the token. The consumer calls Held after a Claim whose response was
	// lost.
	Held(ctx context.Context, consumer string, t Token) ([]Claimed, error)
	// Extend sets the end of the leases to the given duration from now, unless a lease already ends later. If a row is
	// locked because its claim is being ended, Extend skips the row, and the claim does not count as lost.
	Extend(ctx context.Context, claims []Claim, lease time.Duration) (lost []int, err error)
	// Start records that the handlers of the given claims are about to run. A start without an end shows that the
	// message may have crashed its process. The end of a claim removes all recorded starts of the row; the release of a
	// claim removes only the start of that claim.
	Start(ctx context.Context, claims []Claim) (lost []int, err error)
	// End ends claims outside of a batch. StateCompleted is for effects outside of the store.
	End(ctx context.Context, endings []ClaimEnding) (lost []int, err error)
	// The consumer calls Reclaim after a commit with an unknown outcome. Reclaim gives a new token to those rows that
	// are in progress with one of the old tokens. Reclaim waits for transactions that are ending one of the claims, and
	// returns the state of each row after these transactions.
	Reclaim(ctx context.Context, numbers []int64, from []Token, to Token) ([]Reclaimed, error)
	// StartCalls records, for each valid claim, that an external call for its message is about to be made. StartCalls
	// also sets the end of the lease to the given duration from now, unless the lease already ends later. If a response
	// was lost, a repeated call with the same token counts once. StartCalls returns the calls of each row in the order
	// of the claims: how many were started, when the first was started, and how many have a known outcome. If fewer
	// calls have a known outcome than were started, a process may have made a call and crashed, or may have got no
	// response. The record exists as long as the row.
	StartCalls(ctx context.Context, claims []Claim, lease time.Duration) ([]CallStarted, error)
	// LookUpMarkers returns one Verdict for each mark, from committed markers. If there is a marker, the Verdict is
	// Seen, Conflict or Newer, as from Begin. Fresh means that no marker was visible. Fresh is not final, because
	// another transaction may be about to commit a marker; only Begin can decide. LookUpMarkers uses only Scope, ID and
	// Fingerprint of a mark, takes one round trip, writes nothing and waits for no lock.
	LookUpMarkers(ctx context.Context, marks []Mark) ([]Verdict, error)
}
