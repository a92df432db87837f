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
	As  machine.As // for a row that waits: AsReceived, AsWaiting or AsBlocked
	// Reason is the reason for the state of the row.
	Reason semel.Reason
	// Message is the message in the row. Print is the fingerprint in the row's marker.
	Message *Message
	Print   semel.Fingerprint
	// Token is the token of the current claim, or 0 if the row is not claimed. Until is the end of the lease. Due is
	// the time from which a waiting row may be claimed.
	Token      uint64
	Until, Due time.Duration
	// writtenAt is the time of the last write by the store's clock. Waiting is the planned delay since the last
	// write (for the checker).
	writtenAt, Waiting time.Duration
	// Changed is the time when the row ended.
	Changed time.Duration
	// Attempts is the number of runs that ended. Started is the number of runs that were recorded before they
	// began and whose end is not recorded.
	Attempts, Started int
	// By is the process that wrote the row last. From is set if the row was written for a delivery that is too old: the
	// field is that delivery.
	By   holder
	From *Delivery
	// Line is the name of the queue (of a key or lane) that contains the row. Place is the position in that queue, or 0
	// if the row is in no queue.
	Line    string
	Place   int
	Repeats int
	// Calls is the record of calls in the row. For the checker, Starts has the tokens under which the start of a call
	// was recorded, and Taken has the claims that another process took over.
	Calls  calls.Ledger
	Starts map[uint64]bool
	Taken  map[uint64]Takeover
	// Steps contains the completed steps.
	Steps []store.StepDone
	// Sends is how many times the intent was sent before it was suppressed (for the checker).
	Sends int
	// Quiet is true if a replay without effects wrote the row. For the checker, OfReplay is true if the row is an
	// intent of a replay without effects and no person has released the intent.
	Quiet, OfReplay bool
	// Revision changes with each change of the row. The fields Made, WasMade and Acts are for the checker. Made is set
	// when a person schedules the row: it is the number of the action, counted over all rows, or 0 if no person has
	// scheduled the row since it last ended. WasMade is the value of Made when the row ended. Acts is the number of
	// actions that scheduled the row.
	Revision, Made, WasMade, Acts int
	// ByHand is true if a person scheduled the row by a change in the database, without a command of Semel.
	ByHand bool
	// Settled is the number of copies that were acked as duplicates of the row.
	Settled int
	// Doubted is the number of duplicates whose own handler had run and whose commit may have written the marker,
	// because the response to that commit was lost.
	Doubted int
}

// Waits reports whether the row has not ended.
func (r *Row) Waits() bool {
	return r.As == machine.AsReceived || r.As == machine.AsWaiting || r.As == machine.AsBlocked
}

// canBeClaimed reports whether a process may claim the row now.
func (r *Row) canBeClaimed(now time.Duration) bool {
	return r.Waits() && !r.Follows() && (r.Token == 0 && r.Due <= now || r.Token != 0 && r.Until <= now)
}

// Stands reports whether the claim with the given token is valid.
func (r *Row) Stands(token uint64) bool { return r.Waits() && r.Token == token }

// Put writes a new row.
func (s *Store) Put(r *Row) {
	s.Rows[r.Key] = r
	s.Inbox = append(s.Inbox, r)
}

// AnyWaits reports whether there is a row that waits and that can end without a person.
func (s *Store) AnyWaits() bool {
	return slices.ContainsFunc(s.Inbox, func(r *Row) bool { return r.Waits() && !s.waitsForParked(r) })
}

// Take claims rows, up to a limit. A claim is marked as suspect if the lease of an earlier claim of the row expired.
func (s *Store) Take(a machine.ClaimRows, token uint64, now, lease time.Duration) (taken []*Claim) {
	bytes := int64(0)
	for _, r := range s.Inbox {
		if len(taken) == a.Messages || len(taken) > 0 && bytes+int64(r.Message.Size) > a.Bytes {
			break
		}
		if !r.canBeClaimed(now) || s.Over != nil && s.Over(r) {
			continue
		}
		bytes += int64(r.Message.Size)
		if s.Claiming != nil {
			s.Claiming(r)
		}
		if r.Token != 0 { // the previous process may have started the row
			r.Started = max(r.Started, 1)
			r.recordTakeover(now)
		}
		taken = append(taken, &Claim{Row: r, Tokens: []uint64{token}, Suspect: r.Started > 0, Blocked: r.As == machine.AsBlocked})
		if r.As == machine.AsBlocked { // the next claim does not learn that the row was blocked
			r.As = machine.AsWaiting
		}
		r.Token, r.Until = token, now
		r.Leases(now, lease)
		r.Revision++
	}
	return taken
}

// Takeover describes a claim that another process took over: the end of its lease, and the time of the
// takeover.
type Takeover struct{ Until, At time.Duration }

// recordTakeover records that another process takes over the claim of the row.
func (r *Row) recordTakeover(now time.Duration) {
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

// UnknownCall reports whether an identity has a row with a call whose outcome is unknown.
func (s *Store) UnknownCall(id string) bool {
	return slices.ContainsFunc(s.Inbox, func(r *Row) bool { return r.Key.ID == id && r.Calls.Started > r.Calls.Finished })
}

// Claim is a process's claim of a row.
type Claim struct {
	Row *Row
	// Tokens contains the tokens that the process has written into the row. The last element is the current token.
	Tokens  []uint64
	Suspect bool
	// Started is true if the start of the run is recorded.
	Started bool
	// Blocked is true if the row has waited for an earlier version for the longest allowed time.
	Blocked bool
	// Steps contains the steps that were complete when the row was claimed. Stepped also contains the step that ran
	// last.
	Steps, Stepped []store.StepDone
	// Calls is what the process knows about the calls that were made under the claim.
	Calls calls.Claim
	// Ends is the time until which the process certainly has the claim.
	Ends time.Duration
	// Deaf is the number of the next extensions of the lease whose responses get lost.
	Deaf int
}

// Token returns the current token of the claim.
func (c *Claim) Token() uint64 { return c.Tokens[len(c.Tokens)-1] }

// Holds returns the valid claims with a token.
func (s *Store) Holds(token uint64, now time.Duration) (held []*Claim) {
	for _, r := range s.Inbox {
		if r.Stands(token) && r.Until > now {
			held = append(held, &Claim{Row: r, Tokens: []uint64{token}, Suspect: true})
		}
	}
	return held
}

// EndClaim ends a claim as the commit of the batch says.
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

// Free releases the claim if it is still valid, so that the row can be claimed again at once.
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

// isFinal reports whether the row has a final state.
func (r *Row) isFinal() bool {
	switch r.As {
	case machine.AsApplied, machine.AsDuplicate, machine.AsDiscarded, machine.AsDeadLettered:
		return true
	}
	return false
}

// Dates sets the time when the row was written and the time until which the row waits, by the store's clock.
func (r *Row) Dates(at, after time.Duration) {
	r.writtenAt, r.Due, r.Waiting = at, at+after, after
}

// Leases sets the time when the row was claimed and the time when the lease ends, by the store's clock.
func (r *Row) Leases(at, lease time.Duration) {
	r.Cut(at)
	r.writtenAt, r.Until, r.Waiting = at, max(r.Until, at+lease), lease
}

// Cut shortens the delay of a row that was written while the store's clock was ahead: the delay begins again now. Cut
// returns by how much the clock was ahead.
func (r *Row) Cut(at time.Duration) time.Duration {
	if r.Follows() {
		return 0
	}
	due, until := Moment(r.Due), Moment(r.Until)
	by := sqlform.CutAhead(Moment(r.writtenAt), Moment(at), &due, &until)
	if by > 0 {
		r.Due, r.Until, r.writtenAt, r.By = due.Sub(Moment(0)), until.Sub(Moment(0)), at, nil
	}
	return by
}

// Moment converts a time of the run to a time.Time.
func Moment(at time.Duration) time.Time { return time.Unix(1_000_000_000, 0).Add(at) }
