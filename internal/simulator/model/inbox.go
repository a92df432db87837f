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
	As  machine.As // of one that waits, AsReceived, AsWaiting or AsBlocked
	// Reason is why it is where it is.
	Reason semel.Reason
	// Message is what it keeps, Print what its marker says.
	Message *Message
	Print   semel.Fingerprint
	// Token is whose claim stands, 0: nobody's; Until is when its lease ends. Due is
	// when one that waits may be claimed.
	Token      uint64
	Until, Due time.Duration
	// dated is when it was written last, by the store's clock, Waiting for how long it was
	// to wait then: the checker's.
	dated, Waiting time.Duration
	// Changed is when it ended, of one that has.
	Changed time.Duration
	// Attempts are runs that ended; Started are those that were written down before
	// they began and of which no end is known.
	Attempts, Started int
	// By is who wrote it last; From is the delivery that it was written for, if it was too
	// old.
	By   holder
	From *Delivery
	// Line is what it keeps an order with, Place where it stands in it; 0: nowhere.
	Line    string
	Place   int
	Repeats int
	// Calls is what it remembers of them. Starts are the claims under which one was written
	// down, Taken those that another took: both are the checker's.
	Calls  calls.Ledger
	Starts map[uint64]bool
	Taken  map[uint64]Takeover
	// Steps are those that are done.
	Steps []store.StepDone
	// Sends is how often it was sent before it was suppressed: the checker's.
	Sends int
	// Quiet: a replay without effects has left it here. OfReplay: it is an intent of one,
	// and nobody has let it be sent: the checker's.
	Quiet, OfReplay bool
	// Revision changes with what becomes of it. Made says when a person has made it due,
	// counted over all rows, 0: nobody has, or it has ended since; WasMade is what it said
	// then, Acts how often it was: the checker's.
	Revision, Made, WasMade, Acts int
	// ByHand: somebody has made it due past Semel.
	ByHand bool
	// Settled counts the copies that were settled as duplicates of it.
	Settled int
	// Doubted counts those of which a lost commit may have marked the first.
	Doubted int
}

// Waits reports whether the row has not come to its end.
func (r *Row) Waits() bool {
	return r.As == machine.AsReceived || r.As == machine.AsWaiting || r.As == machine.AsBlocked
}

// claimable reports whether somebody may claim the row.
func (r *Row) claimable(now time.Duration) bool {
	return r.Waits() && !r.Follows() && (r.Token == 0 && r.Due <= now || r.Token != 0 && r.Until <= now)
}

// Stands reports whether a claim with this token may end the row.
func (r *Row) Stands(token uint64) bool { return r.Waits() && r.Token == token }

// Put writes a row that is new.
func (s *Store) Put(r *Row) {
	s.Rows[r.Key] = r
	s.Inbox = append(s.Inbox, r)
}

// AnyWaits reports whether a row has not come to its end, and may without a person.
func (s *Store) AnyWaits() bool {
	return slices.ContainsFunc(s.Inbox, func(r *Row) bool { return r.Waits() && !s.behindParked(r) })
}

// Take claims rows that are due, up to a bound; one that is claimed and whose lease
// has ended is suspect.
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
		if r.Token != 0 { // who had it may have begun it
			r.Started = max(r.Started, 1)
			r.takenFrom(now)
		}
		taken = append(taken, &Claim{Row: r, Tokens: []uint64{token}, Suspect: r.Started > 0, Blocked: r.As == machine.AsBlocked})
		if r.As == machine.AsBlocked { // whoever takes it next does not know that it was
			r.As = machine.AsWaiting
		}
		r.Token, r.Until = token, now
		r.Leases(now, lease)
		r.Revision++
	}
	return taken
}

// Takeover is how a claim ended that another took.
type Takeover struct{ Until, At time.Duration }

// takenFrom remembers of a claim that another takes when its lease ended.
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

// UnknownCall reports whether a row of an identity says that the outcome of a call is unknown.
func (s *Store) UnknownCall(id string) bool {
	return slices.ContainsFunc(s.Inbox, func(r *Row) bool { return r.Key.ID == id && r.Calls.Started > r.Calls.Finished })
}

// Claim is a process's claim of a row.
type Claim struct {
	Row *Row
	// Tokens are all that the process has written into the row, the present one last.
	Tokens  []uint64
	Suspect bool
	// Started: its start is written down.
	Started bool
	// Blocked: the row has waited for an earlier version for as long as it may.
	Blocked bool
	// Steps are those that were done when it was taken, Stepped those that are with the one
	// that ran last.
	Steps, Stepped []store.StepDone
	// Calls is what the process knows of those that were made under it.
	Calls calls.Claim
	// Ends is until when the process surely has it.
	Ends time.Duration
	// Deaf is how many of the next extensions of its lease are not answered.
	Deaf int
}

// Token is the claim's present token.
func (c *Claim) Token() uint64 { return c.Tokens[len(c.Tokens)-1] }

// Holds returns what a token holds.
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

// Free makes the row of a claim due that stands.
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

// ended reports whether nothing becomes of the row any more.
func (r *Row) ended() bool {
	switch r.As {
	case machine.AsApplied, machine.AsDuplicate, machine.AsDiscarded, machine.AsDeadLettered:
		return true
	}
	return false
}

// Dates notes by the store's clock when a row was written, and until when it waits.
func (r *Row) Dates(at, after time.Duration) {
	r.dated, r.Due, r.Waiting = at, at+after, after
}

// Leases notes by the store's clock when a row was claimed, and until when.
func (r *Row) Leases(at, lease time.Duration) {
	r.Cut(at)
	r.dated, r.Until, r.Waiting = at, max(r.Until, at+lease), lease
}

// Cut has a row that was dated ahead of the store's clock wait from now.
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

// Moment is a time of the world as a date, for rules that ask for one.
func Moment(at time.Duration) time.Time { return time.Unix(1_000_000_000, 0).Add(at) }
