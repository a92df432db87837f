package admin

import (
	"context"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// PreviewQuery is a mark whose verdict is to be predicted.
type PreviewQuery struct {
	// Source is the source of the identity. Mark.Scope is ignored.
	Source string
	Mark   store.Mark
}

// Previewer is implemented by a TxStore that can predict verdicts. A prediction is not binding,
// because another transaction may change the markers at any time.
type Previewer interface {
	// Preview returns for each mark the verdict that Begin would return now: Fresh, Seen,
	// Conflict or Newer. Preview ignores versions, lines and ages. Preview writes nothing,
	// waits for no lock and does not see open transactions. Preview returns an error that wraps
	// semel.ErrUnsupported if the verdicts of this consumer cannot be predicted.
	Preview(ctx context.Context, consumer string, generation int64, all []PreviewQuery) ([]store.Verdict, error)
}

// Prediction is the predicted outcome of a delivery.
type Prediction struct {
	Key semel.Key
	// Fingerprint is the fingerprint of the delivery's content.
	Fingerprint semel.Fingerprint
	// End is the outcome if the handler does not fail: EndApplied, EndDuplicate, EndConflict,
	// EndParked, EndDeadLettered, EndDiscarded, EndSkipped, or EndReceived if the consumer
	// receives messages into its inbox first. EndUnknown means that it cannot be predicted.
	End source.End
	// Was, with EndDuplicate, is the outcome of the existing marker.
	Was store.Outcome
	// Reason says why the delivery would not be applied, or why that cannot be predicted.
	Reason string
}
