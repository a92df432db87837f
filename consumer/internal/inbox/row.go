package inbox

import (
	"time"

	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/store"
)

// ClaimedRow is a claimed row. The Handle of the row's delivery is the ClaimedRow.
type ClaimedRow struct {
	store.Claimed
	// tokens contains all claim tokens that this process wrote into the row. The last element of tokens is the current
	// token. Only the batch of the row uses tokens.
	tokens []store.Token
	// The field retaking is the token of a Reclaim to which the store did not respond, or 0 if there is none.
	retaking store.Token
	// Started means that the store has recorded the start of the row's handler.
	Started bool
	// Calls contains the known outcomes of the calls that were made under the claim.
	Calls calls.Claim
	// ends is the time until which the lease is certainly valid; guarded by the keeper's mutex.
	ends time.Time
	// Stepped contains the completed steps, including the step that ran last. Stepped is nil if no step ran.
	Stepped []store.StepDone
	// The field halts is the error with which the message stopped the consumer, or nil if the message did not stop the
	// consumer.
	halts error
}

// RowOf returns the claimed row of a delivery, or nil for a delivery of the source.
func RowOf(p *delivery.Delivery) *ClaimedRow {
	h, _ := p.Handle.(*ClaimedRow)
	return h
}

// Claim returns the row's claim with its current token.
func (h *ClaimedRow) Claim() store.Claim {
	return store.Claim{Number: h.Number, Token: h.tokens[len(h.tokens)-1]}
}

// releaseEnding returns how a claim is released. If the message stopped the consumer, the run counts as an
// attempt, and the row is due again at the next start.
func (h *ClaimedRow) releaseEnding() store.ClaimEnding {
	if h.halts != nil {
		return store.ClaimEnding{Claim: h.Claim(), State: store.StateFailedRetryable, Ran: true, Error: ErrorText(h.halts), Call: h.Calls.Outcome()}
	}
	return store.ClaimEnding{Claim: h.Claim(), State: store.StateReceived, Began: h.Started, Call: h.Calls.Released()}
}

// EndState returns the state of the row after its claim has ended. The parameter as is the outcome of the message.
func EndState(as machine.As) store.RowState {
	switch as {
	case machine.AsWaiting:
		return store.StateFailedRetryable
	case machine.AsBlocked:
		return store.StateBlocked
	case machine.AsParked, machine.AsOverdue:
		return store.StateParked
	case machine.AsDeadLettered:
		return store.StateDeadLettered
	case machine.AsDiscarded:
		return store.StateDiscarded
	case machine.AsStepped:
		return store.StateReceived
	}
	return store.StateCompleted
}

// Line returns the name of the inbox queue in which the row waits, or nil if the row is in no queue.
func (h *ClaimedRow) Line() []byte {
	if h.Row.Place == 0 {
		return nil
	}
	return []byte(h.Row.Line)
}

// StepsDone returns the completed steps that are written when the claim ends, or nil if no step ran.
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
