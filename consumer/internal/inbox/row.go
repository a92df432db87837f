package inbox

import (
	"time"

	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// ClaimedRow is the handle of a claimed row.
type ClaimedRow struct {
	store.Claimed
	// tokens are all that this process wrote into the row, the present one last; of
	// the flight that has it.
	tokens []store.Token
	// retaking is the token of a retake whose answer was lost; 0: none.
	retaking store.Token
	// Started: its start is written down; the process has lived since.
	Started bool
	// Calls is what is known of those that were made under the claim.
	Calls calls.Claim
	// ends is until when the lease surely lasts; of the keeper.
	ends time.Time
	// Stepped are the steps that are done with the step that ran last; nil if none ran.
	Stepped []store.StepDone
	// halts is why its message halted the consumer, nil if it did not.
	halts error
}

// RowOf returns the claimed row of a delivery, nil for a delivery of the broker.
func RowOf(p *delivery.Delivery) *ClaimedRow {
	h, _ := p.Handle.(*ClaimedRow)
	return h
}

// Claim is the row's claim as it stands.
func (h *ClaimedRow) Claim() store.Claim {
	return store.Claim{Number: h.Number, Token: h.tokens[len(h.tokens)-1]}
}

// givenBack is how the claim of a message ends that did not end. One that halts the
// consumer had its attempt, and is due again: the next start tries it.
func (h *ClaimedRow) givenBack() store.ClaimEnding {
	if h.halts != nil {
		return store.ClaimEnding{Claim: h.Claim(), Event: store.RowFailed, Ran: true, Error: ErrorText(h.halts), Call: h.Calls.Outcome()}
	}
	return store.ClaimEnding{Claim: h.Claim(), Event: store.RowReleased, Began: h.Started, Call: h.Calls.Released()}
}

// ClaimEvent is how a claim ends that is marked so.
func ClaimEvent(as machine.As) store.RowEvent {
	switch as {
	case machine.AsWaiting:
		return store.RowFailed
	case machine.AsBlocked:
		return store.RowBlocked
	case machine.AsParked, machine.AsOverdue:
		return store.RowParked
	case machine.AsDeadLettered:
		return store.RowDeadLettered
	case machine.AsDiscarded:
		return store.RowDiscarded
	case machine.AsStepped:
		return store.RowStepped
	}
	return store.RowCompleted
}

// Line is what the row stands in, nil if it stands in none.
func (h *ClaimedRow) Line() []byte {
	if h.Row.Place == 0 {
		return nil
	}
	return []byte(h.Row.Line)
}

// StepsDone is what a claim's end writes of steps; nil if none ran.
func (h *ClaimedRow) StepsDone(as machine.As) []store.StepDone {
	if as != machine.AsApplied && as != machine.AsStepped {
		return nil
	}
	return h.Stepped
}

// ErrorText is the text of an error as rows keep it.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	text := legible.Text(err)
	return text[:min(len(text), store.MaxErrorText)]
}
