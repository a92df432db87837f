package measure

import (
	"context"
	"time"

	"github.com/semel-go/semel"
)

// Tracer is a semel.Observer that makes spans, too: a consumer finds it by assertion among its
// observers, and has one at most. Of a batch of which no message is sampled
// (semel.Message.Sampled) it is told nothing. It is called from the goroutine that carries
// the batch out, beside those of other batches, and must not block. One that panics is logged
// once, and is asked for the spans of no later batch.
type Tracer interface {
	semel.Observer
	// TraceBatch is called when a batch has begun that has a sampled message. Nil: nothing of
	// it is recorded.
	TraceBatch(Begun) BatchTrace
}

// Begun is a batch that has begun.
type Begun struct {
	Consumer string
	// Messages are those of the batch, copies and claims among them.
	Messages int
	// At is when its transaction began to be opened.
	At time.Time
}

// BatchTrace is the span of a batch.
type BatchTrace interface {
	// Context is ctx with the span: a handler of all messages together is called with it.
	Context(ctx context.Context) context.Context
	// TraceMessage is called once of each sampled message, before its handler runs, with
	// what it came with. Nil: nothing of it is recorded.
	TraceMessage(parent semel.TraceContext) MessageTrace
	// End ends the span, after those of its messages.
	End(Batch)
}

// MessageTrace is the span of a message in one batch: a further attempt has another one.
type MessageTrace interface {
	// Context is ctx with the span, for the message's handler.
	Context(ctx context.Context) context.Context
	// TraceContext is where the span is: what the handler's message says it came with, so
	// that what it causes is told as the span's.
	TraceContext() semel.TraceContext
	// End ends the span.
	End(MessageEnd)
}

// MessageEnd is how a message's part in a batch ended.
type MessageEnd struct {
	// Ending is how it ended, as source.End names it: "applied", "duplicate" and so on, or
	// "not ended" where the batch was committed without it. Where the batch was not committed
	// it is the word of that, "rolled back" or "unknown" (End).
	Ending string
	// Reason is why it was set aside, if it was.
	Reason semel.Reason
	// Failed: the batch was rolled back because of this very message.
	Failed bool
}
