package contract

import (
	"context"

	"github.com/semel-go/semel"
)

// PreviewQuery asks what a mark would be answered.
type PreviewQuery struct {
	// Source is that of the identity; the scope of the mark is not looked at.
	Source string
	Mark   Mark
}

// Previewer is an optional ability of a TxStore: to say what it would answer to marks. It
// decides nothing, since what is asked about may change at once.
type Previewer interface {
	// Preview says of each mark what Begin would answer now: Fresh, Seen, Conflict or Newer.
	// Versions, lines and ages are not judged. It writes nothing, waits for no lock, and what
	// is in flight it does not see. An error that wraps semel.ErrUnsupported: for this
	// consumer it cannot be known so.
	Preview(ctx context.Context, consumer string, generation int64, all []PreviewQuery) ([]Verdict, error)
}

// Prediction is what would become of a delivery.
type Prediction struct {
	Key semel.Key
	// Fingerprint is of its content, as the consumer recognises it.
	Fingerprint semel.Fingerprint
	// End is how it would end if its handler does not fail: EndApplied, EndDuplicate,
	// EndConflict, EndParked, EndDeadLettered, EndDiscarded, EndSkipped, or EndReceived where
	// it is received first. EndUnknown: it cannot be known.
	End End
	// Was, with EndDuplicate, is the outcome of what is there.
	Was Outcome
	// Reason is why it would not be applied, or why that is not known.
	Reason string
}
