package measure

import (
	"context"
	"time"

	"github.com/semel-go/semel"
)

// Tracer is a semel.Observer that also creates spans. A consumer finds it among its observers by type assertion
// and uses at most one. Tracer is not called for a batch without sampled messages (semel.Message.Sampled).
// Tracer is called in the goroutine of the batch, concurrently with other batches, and must not block. If it
// panics, the panic is logged once and the Tracer is not called for later batches.
type Tracer interface {
	semel.Observer
	// TraceBatch is called when a batch with a sampled message has begun. TraceBatch returns nil if it records
	// nothing.
	TraceBatch(Begun) BatchTrace
}

// Begun describes a batch that has begun.
type Begun struct {
	Consumer string
	// Messages counts the messages of the batch, including copies and claims.
	Messages int
	// At is the time before the transaction was opened.
	At time.Time
}

// BatchTrace is the span of a batch.
type BatchTrace interface {
	// Context returns ctx with the span, for a handler of the whole batch.
	Context(ctx context.Context) context.Context
	// TraceMessage is called once for each sampled message, before its handler runs, with the message's trace
	// context. TraceMessage returns nil if it records nothing.
	TraceMessage(parent semel.TraceContext) MessageTrace
	// End ends the span, after the spans of its messages.
	End(Batch)
}

// MessageTrace is the span of a message in one batch; a further attempt has another span.
type MessageTrace interface {
	// Context returns ctx with the span, for the message's handler.
	Context(ctx context.Context) context.Context
	// TraceContext returns the span's trace context. The handler's message gets it, so that outputs and calls
	// become children of the span.
	TraceContext() semel.TraceContext
	// End ends the span.
	End(MessageEnd)
}

// MessageEnd is how a message ended in a batch.
type MessageEnd struct {
	// Ending is the name of the outcome as in source.End: "applied", "duplicate" and so on, or "not ended" if the
	// batch was committed without the message. If the batch was not committed, it is the name of End: "rolled
	// back or "unknown".
	Ending string
	// Reason is the reason if the message was parked, dead-lettered or discarded.
	Reason semel.Reason
	// Failed reports that the batch was rolled back because of this message.
	Failed bool
}
