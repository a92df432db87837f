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

// Token is the fencing token of a claim. Every write that ends or extends the claim checks it and
// changes nothing if the row has another token. Tokens are random instead of counted, so that a store
// that was restored from a backup or failed over cannot issue a token twice. Zero is not a token.
type Token int64

// NewToken returns a new random token.
func NewToken() Token {
	for {
		var b [8]byte
		_, _ = rand.Read(b[:]) // it never fails
		if t := Token(binary.LittleEndian.Uint64(b[:]) >> 1); t != 0 {
			return t
		}
	}
}

// ErrClaimLost is returned when a claim to be ended or extended is no longer valid, because its lease
// ended and another worker, or an operator, has the row. Nothing was changed.
var ErrClaimLost = errors.New("semel: the claim is lost")

// Claim is the exclusive right to process the message of row Number while the row has this Token.
// Claim lasts for a lease, measured by the store's clock, which can be extended. After the lease
// another worker may claim the row with another token.
type Claim struct {
	Number int64
	Token  Token
}

// ClaimOptions are the options of Leases.Claim.
type ClaimOptions struct {
	Consumer string
	// Token is a new token for each call. If the response of a call is lost, Leases.Held returns
	// the rows that were claimed with it.
	Token Token
	// Numbers limits the claim to these rows; empty means all rows.
	Numbers []int64
	// Most is the maximum number of rows, Bytes the maximum total size of their bodies; zero Bytes
	// means no limit. At least one row is claimed whatever its size.
	Most  int
	Bytes int64
	Lease time.Duration
	// Ahead, if not nil, is called if rows were found that had been written while the store's clock
	// was more than a second ahead: with their number and the largest difference. The delay or lease
	// of such a row then starts now.
	Ahead func(rows int, by time.Duration)
}

// Claimed is a claimed row.
type Claimed struct {
	Claim
	// Row is the row with its message. Its state is StateInProgress.
	Row StoredRow
	// Left is the remaining time of the lease when the store responded.
	Left time.Duration
	// Suspect reports that the lease of an earlier claim ended and no handler has finished since,
	// so the message may have crashed its process. A claim of such a row counts as one start.
	Suspect bool
	// Blocked reports that the row has waited for an earlier version of its stream for the maximum
	// time.
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
	// After, with RowFailed and RowBlocked, is the delay until the row is due again.
	After  time.Duration
	Reason semel.Reason
	// Version, with RowBlocked, is the version that the row waits with; the row stores it.
	Version versions.Position
	// Lined reports that the row is in a line, whose next row is unblocked when this one ends. Only
	// Semel's own stores keep lines.
	Lined bool
	// Began, with RowReleased, removes the recorded Start of this claim, because its process is
	// alive. Starts of other claims stay.
	Began bool
	// Ran reports that the handler ran, which counts as an attempt.
	Ran bool
	// Call is the outcome of an external call that was made under the claim; see CallOutcome. A batch
	// ignores it.
	Call CallOutcome
	// Error is an error message, truncated to MaxErrorText. The row stores its first and its last.
	Error string
	// Steps, with RowStepped and RowCompleted, are all steps that are complete with this commit, in
	// order; nil leaves the row's steps unchanged. See Limits.StepOutput.
	Steps []StepDone
}

// Reclaimed is the result of Leases.Reclaim for one row.
type Reclaimed struct {
	// Taken reports that the row has the new token. Otherwise State is the row's state.
	Taken bool
	State RowState
}

// Leases is implemented by a store with an inbox whose rows can be claimed, each claim with a token and
// a lease by the store's clock. The methods use their own transactions. A lost claim is not an error:
// the methods return its index and leave its row unchanged.
type Leases interface {
	// Claim claims due rows, the longest due first, and rows in progress whose lease has ended.
	// Claim skips rows that another call has locked.
	Claim(ctx context.Context, o ClaimOptions) ([]Claimed, error)
	// Held returns the rows that are claimed with the token. Held is called after a Claim whose
	// response was lost.
	Held(ctx context.Context, consumer string, t Token) ([]Claimed, error)
	// Extend makes the leases end after this duration from now, unless they end later already. A
	// row that is locked because its claim is being ended is skipped and does not count as lost.
	Extend(ctx context.Context, claims []Claim, lease time.Duration) (lost []int, err error)
	// Start records that the handlers of these claims are about to run. Messages that crash their
	// process are recognised by starts without an end. Ending a claim by its token clears all
	// starts of the row; releasing it clears only its own.
	Start(ctx context.Context, claims []Claim) (lost []int, err error)
	// End ends claims outside of a batch. RowCompleted is for effects outside of the store.
	End(ctx context.Context, endings []ClaimEnding) (lost []int, err error)
	// Reclaim gives rows that are in progress with one of the old tokens a new token, after a commit
	// with unknown outcome. Reclaim waits for transactions that are ending one of the claims, and
	// returns the state of each row afterwards.
	Reclaim(ctx context.Context, numbers []int64, from []Token, to Token) ([]Reclaimed, error)
	// StartCalls records, for each valid claim, that an external call for its message is about to be
	// made, and extends its lease to this duration from now unless it ends later already. A repeated
	// call with the same token, after a lost response, counts once. StartCalls returns the calls of
	// each row in the order of the claims: how many were started, when the first was started, and
	// how many have a known outcome. A row with fewer known outcomes than started calls has an
	// unknown outcome: a process may have made the call and crashed, or received no response. The
	// record is kept as long as the row.
	StartCalls(ctx context.Context, claims []Claim, lease time.Duration) ([]CallStarted, error)
	// LookUpMarkers returns one verdict for each mark, from committed markers: Seen, Conflict or
	// Newer if there is a marker, as Begin would return. Fresh means that no marker was visible. It
	// is not binding, because another transaction may be about to commit one, and only Begin can
	// decide. Only Scope, ID and Fingerprint of a mark are used. It takes one round trip, writes
	// nothing and waits for no lock.
	LookUpMarkers(ctx context.Context, marks []Mark) ([]Verdict, error)
}
