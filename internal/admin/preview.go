package admin

import (
	"context"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// PreviewQuery is a message for which Preview predicts what the store will answer.
type PreviewQuery struct {
	// Source is the source of the identity. The field Mark.Scope is ignored.
	Source string
	Mark   store.Mark
}

// Previewer is implemented by a TxStore that can predict what Begin would return for messages (store.Verdict). A
// prediction may become wrong, because another transaction may change the markers at any time.
type Previewer interface {
	// Preview returns for each message the Verdict that Begin would return now: Fresh, Seen, Conflict or Newer. Preview
	// ignores versions, queues of the inbox, and ages. Preview writes nothing, waits for no lock and does not see open
	// transactions. If predictions are not possible for the consumer, the error wraps semel.ErrUnsupported.
	Preview(ctx context.Context, consumer string, generation int64, all []PreviewQuery) ([]store.Verdict, error)
}

// Prediction is the predicted outcome of a delivery.
type Prediction struct {
	Key semel.Key
	// Fingerprint is the fingerprint of the delivery's content.
	Fingerprint semel.Fingerprint
	// End is how the delivery ends if the handler does not fail: EndApplied, EndDuplicate, EndConflict,
	// EndParked, EndDeadLettered, EndDiscarded, EndSkipped, or EndReceived if the consumer receives messages
	// into its inbox first. EndUnknown means that the end cannot be predicted.
	End source.End
	// Was is the outcome of the existing marker. Was is set only if End is EndDuplicate.
	Was store.Outcome
	// Reason is the reason why the delivery would not be applied, or why the result cannot be predicted.
	Reason string
}
