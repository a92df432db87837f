package simulator

import (
	"slices"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// row is an inbox row.
type row struct {
	key rowKey
	as  machine.As // of one that waits, AsReceived, AsWaiting or AsBlocked
	// reason is why it is where it is.
	reason semel.Reason
	// message is what it keeps, print what its marker says.
	message *message
	print   semel.Fingerprint
	// token is whose claim stands, 0: nobody's; until is when its lease ends. due is
	// when one that waits may be claimed.
	token      uint64
	until, due time.Duration
	// dated is when it was written last, by the store's clock, waiting for how long it was
	// to wait then: the checker's.
	dated, waiting time.Duration
	// changed is when it ended, of one that has.
	changed time.Duration
	// attempts are runs that ended; started are those that were written down before
	// they began and of which no end is known.
	attempts, started int
	// by is who wrote it last; from is the delivery that it was written for, if it was too
	// old.
	by   *process
	from *delivery
	// line is what it keeps an order with, place where it stands in it; 0: nowhere.
	line    string
	place   int
	repeats int
	// calls is what it remembers of them. starts are the claims under which one was written
	// down, taken those that another took: both are the checker's.
	calls  calls.Ledger
	starts map[uint64]bool
	taken  map[uint64]takeover
	// steps are those that are done.
	steps []store.StepDone
	// sends is how often it was sent before it was suppressed: the checker's.
	sends int
	// quiet: a replay without effects has left it here. ofReplay: it is an intent of one,
	// and nobody has let it be sent: the checker's.
	quiet, ofReplay bool
	// revision changes with what becomes of it. made says when a person has made it due,
	// counted over all rows, 0: nobody has, or it has ended since; wasMade is what it said
	// then, acts how often it was: the checker's.
	revision, made, wasMade, acts int
	// byHand: somebody has made it due past Semel.
	byHand bool
	// settled counts the copies that were settled as duplicates of it.
	settled int
	// doubted counts those of which a lost commit may have marked the first.
	doubted int
}

// waits reports whether the row has not come to its end.
func (r *row) waits() bool {
	return r.as == machine.AsReceived || r.as == machine.AsWaiting || r.as == machine.AsBlocked
}

// claimable reports whether somebody may claim the row.
func (r *row) claimable(now time.Duration) bool {
	return r.waits() && !r.follows() && (r.token == 0 && r.due <= now || r.token != 0 && r.until <= now)
}

// stands reports whether a claim with this token may end the row.
func (r *row) stands(token uint64) bool { return r.waits() && r.token == token }

// put writes a row that is new.
func (s *simStore) put(r *row) {
	s.rows[r.key] = r
	s.inbox = append(s.inbox, r)
}

// anyWaits reports whether a row has not come to its end, and may without a person.
func (s *simStore) anyWaits() bool {
	return slices.ContainsFunc(s.inbox, func(r *row) bool { return r.waits() && !s.behindParked(r) })
}

// take claims rows that are due, up to a bound; one that is claimed and whose lease
// has ended is suspect.
func (s *simStore) take(a machine.ClaimRows, token uint64, now, lease time.Duration) (taken []*claim) {
	bytes := int64(0)
	for _, r := range s.inbox {
		if len(taken) == a.Messages || len(taken) > 0 && bytes+int64(r.message.size) > a.Bytes {
			break
		}
		if !r.claimable(now) || s.over != nil && s.over(r) {
			continue
		}
		bytes += int64(r.message.size)
		if s.claiming != nil {
			s.claiming(r)
		}
		if r.token != 0 { // who had it may have begun it
			r.started = max(r.started, 1)
			r.takenFrom(now)
		}
		taken = append(taken, &claim{row: r, tokens: []uint64{token}, suspect: r.started > 0, blocked: r.as == machine.AsBlocked})
		if r.as == machine.AsBlocked { // whoever takes it next does not know that it was
			r.as = machine.AsWaiting
		}
		r.token, r.until = token, now
		r.leases(now, lease)
		r.revision++
	}
	return taken
}

// takenFrom remembers of a claim that another takes when its lease ended.
func (r *row) takenFrom(now time.Duration) {
	if r.taken == nil {
		r.taken = map[uint64]takeover{}
	}
	r.taken[r.token] = takeover{r.until, now}
}

// holds returns what a token holds.
func (s *simStore) holds(token uint64, now time.Duration) (held []*claim) {
	for _, r := range s.inbox {
		if r.stands(token) && r.until > now {
			held = append(held, &claim{row: r, tokens: []uint64{token}, suspect: true})
		}
	}
	return held
}

// endClaim ends a claim as its flight says.
func (s *simStore) endClaim(c *claim, r *machine.Row, by *process) {
	to := c.row
	to.revision++
	to.as, to.reason, to.attempts, to.token, to.started, to.by = r.As, r.Reason, r.Attempts, 0, 0, by
	to.changed = by.w.now
	to.dates(by.w.at(), r.After)
	if r.As == machine.AsApplied || r.As == machine.AsStepped {
		to.steps = c.stepped
	}
	if r.As == machine.AsStepped {
		to.as, to.reason, to.attempts = machine.AsReceived, "", 0
	}
	if !to.waits() {
		to.made, to.wasMade = 0, to.made
	}
	s.remember(to.key.id, outcomes[r.As], marker{print: to.print, at: by.w.now})
}

// free makes the row of a claim due that stands.
func (c *claim) free(by *process) {
	if r := c.row; r.stands(c.token()) {
		r.calls.End(c.calls.Released(), store.Token(c.token()))
		r.as, r.token, r.by = machine.AsReceived, 0, by
		r.dates(by.w.at(), 0)
		if c.started {
			r.started--
		}
	}
}

// person lets somebody act on a row: retry what is parked, end a claim, discard
// what waits.
func (w *world) person() {
	s := w.store
	if !w.plan.config.Inbox || len(s.inbox) == 0 || s.down {
		return
	}
	r := s.inbox[w.choices.below(len(s.inbox))]
	if i := slices.IndexFunc(s.inbox, func(r *row) bool { return r.reason == semel.ReasonOutcomeUnknown }); i >= 0 && w.choices.flip() {
		r = s.inbox[i]
	}
	m, marked := s.markers[r.key.id]
	r.revision++
	switch {
	case r.key.conflict || r.byHand || w.plan.twins && !r.waits() && s.mayRun(r) != nil:
	case r.as == machine.AsParked && marked && m.outcome == store.Parked && r.reason == semel.ReasonOutcomeUnknown:
		w.resolve(r)
	case r.overdue() && w.choices.flip():
		w.skip(r)
	case r.keepsBack() && w.choices.chance(3):
		w.pass(r)
	case (r.as == machine.AsParked || r.overdue()) && marked && m.outcome == store.Parked && r.reason != semel.ReasonExpired:
		verb := "retries"
		if r.reason == semel.ReasonSuppressed {
			verb, r.ofReplay = "sends what was suppressed", false
		}
		w.fault("a person "+verb, "%s", r.key.id)
		r.as, r.reason, r.by = machine.AsWaiting, "", nil
		r.dates(w.at(), 0)
		s.remember(r.key.id, store.Waiting, marker{print: r.print, at: w.now})
	case r.waits() && r.token != 0 && w.choices.flip():
		w.fault("a person ends a claim", "%s", r.key.id)
		r.as, r.token, r.by = machine.AsReceived, 0, nil
		r.dates(w.at(), 0)
	case w.main != nil && r.as == machine.AsParked && r.reason == semel.ReasonSuppressed && marked && m.outcome == store.Parked && w.choices.chance(3): // it stays so
	case w.main != nil && r.waits() && r.token == 0 && w.choices.flip():
		w.suppress(r)
	case r.waits() && !(w.plan.twins && w.inPart(r)) && w.choices.chance(4):
		w.fault("a person discards", "%s", r.key.id)
		s.closeMarker(r)
		r.as, r.token = machine.AsDiscarded, 0
		r.changed = w.now
		s.advance(r, nil, w.at())
		w.wrapUp()
	}
}
