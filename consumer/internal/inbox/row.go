package inbox

import (
	"time"

	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// ClaimedRow is a claimed row; it is the Handle of the row's delivery.
type ClaimedRow struct {
	store.Claimed
	// tokens are all tokens that this process wrote into the row, the current one last. Only the
	// row's flight uses them.
	tokens []store.Token
	// retaking is the token of a Reclaim that the store did not answer; 0: none.
	retaking store.Token
	// Started: the start of the row's handler is recorded.
	Started bool
	// Calls is what is known of the calls that were made under the claim.
	Calls calls.Claim
	// ends is until when the lease certainly lasts; guarded by the keeper's mutex.
	ends time.Time
	// Stepped are the completed steps including the one that ran last; nil if none ran.
	Stepped []store.StepDone
	// halts is the error with which the message halted the consumer, nil if it did not.
	halts error
}

// RowOf returns the claimed row of a delivery, nil for a delivery of the broker.
func RowOf(p *delivery.Delivery) *ClaimedRow {
	h, _ := p.Handle.(*ClaimedRow)
	return h
}

// Claim returns the row's claim with its current token.
func (h *ClaimedRow) Claim() store.Claim {
	return store.Claim{Number: h.Number, Token: h.tokens[len(h.tokens)-1]}
}

// givenBack returns how the claim of a message ends that has not ended. If the message halted the
// consumer, that was an attempt, and the row is due again at the next start.
func (h *ClaimedRow) givenBack() store.ClaimEnding {
	if h.halts != nil {
		return store.ClaimEnding{Claim: h.Claim(), Event: store.RowFailed, Ran: true, Error: ErrorText(h.halts), Call: h.Calls.Outcome()}
	}
	return store.ClaimEnding{Claim: h.Claim(), Event: store.RowReleased, Began: h.Started, Call: h.Calls.Released()}
}

// ClaimEvent returns the event that ends a claim whose message ends so.
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

// Line returns the line of the row, nil if it has none.
func (h *ClaimedRow) Line() []byte {
	if h.Row.Place == 0 {
		return nil
	}
	return []byte(h.Row.Line)
}

// StepsDone returns the completed steps that the end of the claim writes; nil if none ran.
func (h *ClaimedRow) StepsDone(as machine.As) []store.StepDone {
	if as != machine.AsApplied && as != machine.AsStepped {
		return nil
	}
	return h.Stepped
}

// ErrorText returns the text of an error as rows store it.
func ErrorText(err error) string {
	if err == nil {
		return ""
	}
	text := legible.Text(err)
	return text[:min(len(text), store.MaxErrorText)]
}
