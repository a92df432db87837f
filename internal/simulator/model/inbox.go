package model

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/sqlform"
	"github.com/semel-go/semel/store"
)

// Row is an inbox row.
type Row struct {
	Key RowKey
	As  machine.As // of a row that waits: AsReceived, AsWaiting or AsBlocked
	// Reason is the reason for the state of the row.
	Reason semel.Reason
	// Message is the message in the row, Print the fingerprint that its marker has.
	Message *Message
	Print   semel.Fingerprint
	// Token is the token of the current claim, 0 if there is none; Until is the end of its lease. Due is
	// when a waiting row may be claimed.
	Token      uint64
	Until, Due time.Duration
	// dated is the time of the last write by the store's clock, Waiting how long the row was to wait from
	// then (the checker's).
	dated, Waiting time.Duration
	// Changed is when the row ended.
	Changed time.Duration
	// Attempts counts the runs that ended. Started counts the runs that were recorded before they began and
	// whose end is not recorded.
	Attempts, Started int
	// By is the process that wrote the row last. From is the delivery that the row was written for, if the
	// delivery was too old.
	By   holder
	From *Delivery
	// Line names the line in which the row keeps its order, Place is its place there; 0 if it has none.
	Line    string
	Place   int
	Repeats int
	// Calls is the record of calls in the row. Starts are the tokens under which the start of a call was
	// recorded, Taken the claims that another process took over (both the checker's).
	Calls  calls.Ledger
	Starts map[uint64]bool
	Taken  map[uint64]Takeover
	// Steps are the completed steps.
	Steps []store.StepDone
	// Sends counts how often the intent was sent before it was suppressed (the checker's).
	Sends int
	// Quiet: a replay without effects wrote the row. OfReplay: the row is an intent of such a replay, and no
	// person has let it be sent (the checker's).
	Quiet, OfReplay bool
	// Revision changes with each change of the row. Made is the number of the act by which a person made the
	// row due, counted over all rows; 0 if no person did, or the row has ended since. WasMade is the value of
	// Made when the row ended, Acts the number of such acts (the checker's).
	Revision, Made, WasMade, Acts int
	// ByHand: a person made the row due without Semel.
	ByHand bool
	// Settled counts the copies that were settled as duplicates of the row.
	Settled int
	// Doubted counts the duplicates whose own handler had run: the commit, whose answer was lost, may have
	// written the marker.
	Doubted int
}

// Waits reports whether the row has not ended.
func (r *Row) Waits() bool {
	return r.As == machine.AsReceived || r.As == machine.AsWaiting || r.As == machine.AsBlocked
}

// claimable reports whether a process may claim the row.
func (r *Row) claimable(now time.Duration) bool {
	return r.Waits() && !r.Follows() && (r.Token == 0 && r.Due <= now || r.Token != 0 && r.Until <= now)
}

// Stands reports whether a claim with this token may end the row.
func (r *Row) Stands(token uint64) bool { return r.Waits() && r.Token == token }

// Put writes a new row.
func (s *Store) Put(r *Row) {
	s.Rows[r.Key] = r
	s.Inbox = append(s.Inbox, r)
}

// AnyWaits reports whether there is a row that has not ended and can end without a person.
func (s *Store) AnyWaits() bool {
	return slices.ContainsFunc(s.Inbox, func(r *Row) bool { return r.Waits() && !s.behindParked(r) })
}

// Take claims rows that are due, up to a bound. A claim of a row whose earlier lease expired is
// suspect.
func (s *Store) Take(a machine.ClaimRows, token uint64, now, lease time.Duration) (taken []*Claim) {
	bytes := int64(0)
	for _, r := range s.Inbox {
		if len(taken) == a.Messages || len(taken) > 0 && bytes+int64(r.Message.Size) > a.Bytes {
			break
		}
		if !r.claimable(now) || s.Over != nil && s.Over(r) {
			continue
		}
		bytes += int64(r.Message.Size)
		if s.Claiming != nil {
			s.Claiming(r)
		}
		if r.Token != 0 { // the previous process may have started it
			r.Started = max(r.Started, 1)
			r.takenFrom(now)
		}
		taken = append(taken, &Claim{Row: r, Tokens: []uint64{token}, Suspect: r.Started > 0, Blocked: r.As == machine.AsBlocked})
		if r.As == machine.AsBlocked { // the next claim does not know that the row was blocked
			r.As = machine.AsWaiting
		}
		r.Token, r.Until = token, now
		r.Leases(now, lease)
		r.Revision++
	}
	return taken
}

// Takeover describes a claim that another process took over: when its lease ended, and when it was taken.
type Takeover struct{ Until, At time.Duration }

// takenFrom records that another process takes over the current claim.
func (r *Row) takenFrom(now time.Duration) {
	if r.Taken == nil {
		r.Taken = map[uint64]Takeover{}
	}
	r.Taken[r.Token] = Takeover{r.Until, now}
}

// StartCall commits the start of a call.
func (r *Row) StartCall(token uint64, at time.Time) store.CallStarted {
	if r.Starts == nil {
		r.Starts = map[uint64]bool{}
	}
	r.Starts[token] = true
	return r.Calls.Start(store.Token(token), at)
}

// UnknownCall reports whether a row of an identity has a call with an unknown outcome.
func (s *Store) UnknownCall(id string) bool {
	return slices.ContainsFunc(s.Inbox, func(r *Row) bool { return r.Key.ID == id && r.Calls.Started > r.Calls.Finished })
}

// Claim is a process's claim of a row.
type Claim struct {
	Row *Row
	// Tokens are the tokens that the process has written into the row, the current one last.
	Tokens  []uint64
	Suspect bool
	// Started: the start of the run is recorded.
	Started bool
	// Blocked: the row has waited for an earlier version for as long as it may.
	Blocked bool
	// Steps are the steps that were completed when the row was claimed; Stepped also has the step that ran
	// last.
	Steps, Stepped []store.StepDone
	// Calls is what the process knows about the calls under this claim.
	Calls calls.Claim
	// Ends is the time until which the process certainly holds the claim.
	Ends time.Duration
	// Deaf is the number of next extensions of the lease whose answers are lost.
	Deaf int
}

// Token returns the current token of the claim.
func (c *Claim) Token() uint64 { return c.Tokens[len(c.Tokens)-1] }

// Holds returns the claims that a token holds.
func (s *Store) Holds(token uint64, now time.Duration) (held []*Claim) {
	for _, r := range s.Inbox {
		if r.Stands(token) && r.Until > now {
			held = append(held, &Claim{Row: r, Tokens: []uint64{token}, Suspect: true})
		}
	}
	return held
}

// EndClaim ends a claim as its flight says.
func (s *Store) EndClaim(c *Claim, r *machine.Row, by holder, now, at time.Duration) {
	to := c.Row
	to.Revision++
	to.As, to.Reason, to.Attempts, to.Token, to.Started, to.By = r.As, r.Reason, r.Attempts, 0, 0, by
	to.Changed = now
	to.Dates(at, r.After)
	if r.As == machine.AsApplied || r.As == machine.AsStepped {
		to.Steps = c.Stepped
	}
	if r.As == machine.AsStepped {
		to.As, to.Reason, to.Attempts = machine.AsReceived, "", 0
	}
	if !to.Waits() {
		to.Made, to.WasMade = 0, to.Made
	}
	s.Remember(to.Key.ID, Outcomes[r.As], Marker{Print: to.Print, At: now})
}

// Free gives the row back and makes it due, if the claim is still valid.
func (c *Claim) Free(by holder, at time.Duration) {
	if r := c.Row; r.Stands(c.Token()) {
		r.Calls.End(c.Calls.Released(), store.Token(c.Token()))
		r.As, r.Token, r.By = machine.AsReceived, 0, by
		r.Dates(at, 0)
		if c.Started {
			r.Started--
		}
	}
}

// ended reports whether the row is in a final state.
func (r *Row) ended() bool {
	switch r.As {
	case machine.AsApplied, machine.AsDuplicate, machine.AsDiscarded, machine.AsDeadLettered:
		return true
	}
	return false
}

// Dates records, by the store's clock, when a row was written and until when it waits.
func (r *Row) Dates(at, after time.Duration) {
	r.dated, r.Due, r.Waiting = at, at+after, after
}

// Leases records, by the store's clock, when a row was claimed and until when.
func (r *Row) Leases(at, lease time.Duration) {
	r.Cut(at)
	r.dated, r.Until, r.Waiting = at, max(r.Until, at+lease), lease
}

// Cut restarts the wait of a row that was dated ahead of the store's clock, from now. Cut returns by how
// much the row was ahead.
func (r *Row) Cut(at time.Duration) time.Duration {
	if r.Follows() {
		return 0
	}
	due, until := Moment(r.Due), Moment(r.Until)
	by := sqlform.CutAhead(Moment(r.dated), Moment(at), &due, &until)
	if by > 0 {
		r.Due, r.Until, r.dated, r.By = due.Sub(Moment(0)), until.Sub(Moment(0)), at, nil
	}
	return by
}

// Moment converts a time of the world to a time.Time.
func Moment(at time.Duration) time.Time { return time.Unix(1_000_000_000, 0).Add(at) }
