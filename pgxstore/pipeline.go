package pgxstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A slice is a number of statements whose answers the server sends together. Without flush
// requests the server keeps its answers until the last, and a slow batch would look like a
// dead connection. But flushing costs time: for a batch of 500 small statements, three
// quarters more with a flush after each statement, a tenth after 16, and a fiftieth after 128.
// So slices are short until the connection is known to be fast. Then the size follows from the
// time per statement in the last exchange and perSlice.
const (
	leastSlice = 16
	mostSlice  = 128
	perSlice   = 4 * time.Millisecond
)

// sliceAfter returns the slice size after n statements took this time. sliceAfter keeps slice
// if there were too few statements to measure.
func sliceAfter(slice, n int, took time.Duration) int {
	if n < leastSlice {
		return slice
	}
	return min(max(leastSlice, int(time.Duration(n)*perSlice/max(took, 1))), mostSlice)
}

// mostUnsent is how many bytes of arguments are collected before they are sent. If more were
// sent at once, the network buffers could fill up, and sending would take as long as the
// statements.
const mostUnsent = 64 << 10

// transmit sends prepared requests without waiting for answers between them, then reads the
// answers.
func (l *link) transmit(ctx context.Context, requests []*request) (failed int, err error) {
	ctx, w := l.waiting(ctx)
	defer w.end()
	ctx, t := l.trace(ctx, requests, w)
	began := time.Now()
	p := l.pg.StartPipeline(ctx)
	slice := max(l.known.slice, leastSlice)
	first, unsent := 0, 0
	for i, r := range requests {
		l.send(p, r)
		if (i+1)%slice == 0 {
			p.SendFlushRequest()
		}
		if unsent += r.size(); unsent > mostUnsent && err == nil {
			w.sending(requests[first : i+1])
			err = p.Flush()
			first, unsent = i+1, 0
		}
	}
	w.sending(requests[first:])
	if err == nil {
		err = p.Sync()
	}
	failed = none
	if err == nil {
		failed, err = l.answers(p, requests, slice, w, t)
	}
	if err == nil { // after a failure the statements after it did not run
		l.known.slice = sliceAfter(slice, len(requests), time.Since(began))
	}
	if closing := p.Close(); err == nil {
		err = closing
	}
	if outdated(err) {
		l.known.stale = true
	}
	err = w.explain(ctx, err)
	t.end(err)
	return failed, err
}

// answers reads the answers in order. failed is the index of the request that failed.
func (l *link) answers(p *pgconn.Pipeline, requests []*request, slice int, w *wait, t *trace) (failed int, err error) {
	for i, r := range requests {
		if i%slice == 0 {
			w.next(requests[i:min(i+slice, len(requests))])
		}
		t.reads()
		err := l.answerOf(p, r, w)
		t.answer(err)
		if t != nil || r.calls() {
			w.next(requests[i+1 : min((i/slice+1)*slice, len(requests))])
		}
		switch {
		case errors.Is(err, errNoAnswer):
			return none, fmt.Errorf("%w to statement %d", err, i)
		case err != nil:
			return i, err
		}
	}
	return none, nil
}

var errNoAnswer = errors.New("pgxstore: the server sent an unexpected message")

func (l *link) answerOf(p *pgconn.Pipeline, r *request, w *wait) error {
	got, err := p.GetResults()
	if err != nil {
		return err
	}
	reader, ok := got.(*pgconn.ResultReader)
	if !ok {
		return fmt.Errorf("%w, %T,", errNoAnswer, got)
	}
	if r.read != nil {
		r.refusal = l.read(reader, r, w)
	}
	r.tag, err = reader.Close()
	return err
}

// read passes the rows to the reader of the request and returns the reader's error, which is
// the request's refusal. The server's error for the statement comes from closing the result.
func (l *link) read(reader *pgconn.ResultReader, r *request, w *wait) error {
	rows := pgx.RowsFromResultReader(l.conn.TypeMap(), reader)
	if r.calls() {
		w.pause()
		rows = &awaited{rows, w, []*request{r}}
	}
	defer rows.Close()
	return r.read(rows)
}

// calls reports whether a handler's callback reads the rows.
func (r *request) calls() bool { return r.read != nil && r.limited }

// awaited are rows that a callback reads. The wait for the server runs only while the callback
// fetches the next row, because the time between belongs to the callback.
type awaited struct {
	pgx.Rows
	wait *wait
	of   []*request
}

func (a *awaited) Next() bool {
	a.wait.next(a.of)
	defer a.wait.pause()
	return a.Rows.Next()
}

func (a *awaited) Close() {
	a.wait.next(a.of)
	defer a.wait.pause()
	a.Rows.Close()
}

// size returns the bytes of the arguments.
func (r *request) size() (n int) {
	for _, v := range r.values {
		n += len(v)
	}
	return n
}

// wait cancels a pipeline if the server is silent for too long.
type wait struct {
	link   *link
	timer  *time.Timer // nil if only the context limits it
	cancel context.CancelCauseFunc
}

var errSilent = errors.New("the server did not answer")

// waiting returns a context for a pipeline, which ends when an expected answer does not arrive
// in time.
func (l *link) waiting(ctx context.Context) (context.Context, *wait) {
	w := &wait{link: l}
	if l.answer > 0 {
		ctx, w.cancel = context.WithCancelCause(ctx)
		w.timer = time.AfterFunc(l.answer, func() { w.cancel(errSilent) })
	}
	return ctx, w
}

// sending sets the limit for sending requests: once the network buffers are full, sending
// takes as long as the statements.
func (w *wait) sending(requests []*request) { w.give(requests, math.MaxInt64) }

// leastAllowance is the minimum limit for the statements of a slice together.
const leastAllowance = time.Minute

// next sets the limit for the next answers. A long slice, whose statements were fast, gets
// only the limit of the shortest slice, or leastAllowance. So a dead connection is noticed
// early, and only statements that became thousands of times slower would be mistaken for one.
func (w *wait) next(requests []*request) {
	w.give(requests, max(leastSlice*w.link.statement, leastAllowance))
}

// give sets the limit for the answers to requests. most bounds the part of those statements
// that have their own limit.
func (w *wait) give(requests []*request, most time.Duration) {
	if w.timer == nil {
		return
	}
	d, bounded := w.link.allowance(requests, most)
	if !bounded { // the statements have no limit
		w.timer.Stop()
		return
	}
	w.timer.Reset(d)
}

// allowance returns how long the answers to requests may take: the answer limit for each
// sixteen statements of Semel, plus the limits of the handlers' statements. bounded is false
// if those have no limit.
func (l *link) allowance(requests []*request, most time.Duration) (d time.Duration, bounded bool) {
	limited := 0
	for _, r := range requests {
		if r.limited {
			limited++
		}
	}
	own := len(requests) - limited
	d = l.answer * time.Duration(max(1, (own+leastSlice-1)/leastSlice))
	return d + min(time.Duration(limited)*l.statement, most), limited == 0 || l.statement > 0
}

// pause stops the timer while no answer is expected.
func (w *wait) pause() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

func (w *wait) end() {
	if w.timer != nil {
		w.timer.Stop()
		w.cancel(nil)
	}
}

// explain adds to an error that this wait ended the pipeline.
func (w *wait) explain(ctx context.Context, err error) error {
	if err != nil && w.timer != nil && errors.Is(context.Cause(ctx), errSilent) {
		return fmt.Errorf("%w within %s after the time limit of its statements: %w", errSilent, w.link.answer, err)
	}
	return err
}
