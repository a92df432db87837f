package pgxstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// trace reports statements that are sent together to the tracer of the pool's connections. Each statement is
// reported once, as pgx does: as part of a batch, or as a query if the tracer does not support batches. A nil
// trace reports nothing.
type trace struct {
	ctx      context.Context
	link     *link
	wait     *wait
	batches  pgx.BatchTracer // nil if each statement is reported as a query
	queries  pgx.QueryTracer
	requests []*request
	contexts []context.Context // contexts of the queries
	answered int
	reading  time.Time
}

// callTracer calls the function call, which calls the tracer. The time limit of w is paused during the call, so a
// caller that expects further answers must set the time limit again with w.limitNext. If the tracer panics, the tracer
// is not called again in this batch. A panic of the tracer must not make the batch fail, because the batch may be
// committed already.
func (l *link) callTracer(w *wait, call func()) {
	if l.tracingDisabled {
		return
	}
	w.pause()
	defer func() {
		if recover() != nil {
			l.tracingDisabled = true
		}
	}()
	call()
}

// trace begins a trace. The returned context is for the traced statements.
func (l *link) trace(ctx context.Context, requests []*request, w *wait) (context.Context, *trace) {
	if l.known.tracer == nil || l.tracingDisabled {
		return ctx, nil
	}
	t := &trace{ctx: ctx, link: l, wait: w, queries: l.known.tracer, requests: requests}
	var can bool
	if t.batches, can = l.known.tracer.(pgx.BatchTracer); can {
		var b pgx.Batch
		for _, r := range requests {
			b.Queue(r.sql, r.args...)
		}
		l.callTracer(w, func() { t.ctx = t.batches.TraceBatchStart(ctx, l.conn, pgx.TraceBatchStartData{Batch: &b}) })
		return t.ctx, t
	}
	t.contexts = make([]context.Context, len(requests))
	for i, r := range requests {
		l.callTracer(w, func() {
			t.contexts[i] = t.queries.TraceQueryStart(ctx, l.conn, pgx.TraceQueryStartData{SQL: r.sql, Args: r.args})
		})
	}
	return ctx, t
}

// startRead must be called before the next answer is read.
func (t *trace) startRead() {
	if t != nil {
		t.reading = time.Now()
	}
}

// answer reports the next answer.
func (t *trace) answer(err error) {
	if t == nil {
		return
	}
	i, r := t.answered, t.requests[t.answered]
	t.answered++
	t.link.callTracer(t.wait, func() {
		if t.batches == nil {
			t.queries.TraceQueryEnd(t.contexts[i], t.link.conn, pgx.TraceQueryEndData{CommandTag: r.tag, Err: err})
			return
		}
		t.batches.TraceBatchQuery(t.ctx, t.link.conn, pgx.TraceBatchQueryData{SQL: r.sql, Args: r.args, CommandTag: r.tag, Err: err, ReadStartTime: t.reading})
	})
}

// end ends the trace. Queries that got no answer end with err.
func (t *trace) end(err error) {
	switch {
	case t == nil:
	case t.batches != nil:
		t.link.callTracer(t.wait, func() { t.batches.TraceBatchEnd(t.ctx, t.link.conn, pgx.TraceBatchEndData{Err: err}) })
	default:
		for t.answered < len(t.requests) {
			t.answer(err)
		}
	}
}

// tracePreparing reports statements that are prepared together. The returned function ends the reports. The returned
// function gets the number of statements that were prepared as its parameter failed.
func (l *link) tracePreparing(ctx context.Context, names, texts []string, w *wait) (end func(failed int, err error)) {
	tracer, can := l.known.tracer.(pgx.PrepareTracer)
	if !can {
		return func(int, error) {}
	}
	of := make([]context.Context, len(texts))
	for i, text := range texts {
		l.callTracer(w, func() {
			of[i] = tracer.TracePrepareStart(ctx, l.conn, pgx.TracePrepareStartData{Name: names[i], SQL: text})
		})
	}
	return func(failed int, err error) {
		for i := range of {
			var data pgx.TracePrepareEndData
			if i >= failed {
				data.Err = err
			}
			l.callTracer(w, func() { tracer.TracePrepareEnd(of[i], l.conn, data) })
		}
	}
}
