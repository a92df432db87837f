package engine

import (
	"context"
	"slices"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/store"
)

// spans are the spans of a batch that has sampled messages.
type spans struct {
	batch    measure.BatchTrace
	ctx      context.Context // context of a handler of whole batches
	messages []messageSpan   // by entry
}

// messageSpan is the span of one entry.
type messageSpan struct {
	entry int
	span  measure.MessageTrace
	// message is the message with the trace context of the span. The handler gets message and ctx.
	message *semel.Message
	ctx     context.Context
}

// trace begins the spans of a batch that has begun. Messages get a span if they are sampled and may end with
// the batch. Without a tracer, trace does nothing. With a tracer, trace reads the headers of each message.
func (p *pilot[Tx]) trace(f *flight[Tx], verdicts []store.Verdict) {
	n := p.engine.Reporter
	tracer := n.Tracer()
	if tracer == nil {
		return
	}
	for i := range f.Entries {
		switch verdicts[i].Kind {
		case store.Fresh, store.Seen, store.Conflict:
		default:
			continue
		}
		m := &f.Entries[i].Item.Handle.(*delivery.Delivery).Message
		if !m.Sampled() {
			continue
		}
		if f.spans == nil {
			f.spans = &spans{ctx: f.ctx}
			n.Trace(func() {
				f.spans.beginBatch(tracer.TraceBatch(measure.Begun{Consumer: p.engine.config.Consumer, Messages: len(f.Entries), At: f.began}))
			})
		}
		if f.spans.batch == nil {
			return
		}
		n.Trace(func() { f.spans.begin(f.ctx, i, m) })
	}
}

func (s *spans) beginBatch(b measure.BatchTrace) {
	if b != nil {
		s.ctx, s.batch = b.Context(s.ctx), b
	}
}

// begin begins the span of an entry.
func (s *spans) begin(ctx context.Context, entry int, m *semel.Message) {
	parent, _ := m.TraceContext()
	span := s.batch.TraceMessage(parent)
	if span == nil {
		return
	}
	s.messages = append(s.messages, messageSpan{entry: entry, span: span, ctx: span.Context(ctx), message: m.WithTraceContext(span.TraceContext())})
}

// entryContext returns the context and the message that the handler of an entry gets.
func (f *flight[Tx]) entryContext(entry int, m *semel.Message) (context.Context, *semel.Message) {
	if f.spans == nil {
		return f.ctx, m
	}
	i, found := slices.BinarySearchFunc(f.spans.messages, entry, func(s messageSpan, entry int) int { return s.entry - entry })
	if !found {
		return f.ctx, m
	}
	s := &f.spans.messages[i]
	s.message.Attempt = m.Attempt
	return s.ctx, s.message
}

// batchContext returns the context that a handler of whole batches gets.
func (f *flight[Tx]) batchContext() context.Context {
	if f.spans == nil {
		return f.ctx
	}
	return f.spans.ctx
}

// endSpans ends the spans of a batch that has ended.
func (p *pilot[Tx]) endSpans(f *flight[Tx], culprit int) {
	n := p.engine.Reporter
	if f.spans == nil || f.spans.batch == nil {
		return
	}
	n.Trace(func() {
		for i := range f.spans.messages {
			s := &f.spans.messages[i]
			end := measure.MessageEnd{Ending: f.durations.End.String(), Failed: s.entry == culprit}
			if f.durations.End == measure.Committed {
				ending, reason := p.engine.machine.Ending(f.Flight, s.entry)
				end.Ending, end.Reason = ending.String(), reason
			}
			s.span.End(end)
		}
		f.spans.batch.End(f.durations)
	})
}
