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

// A slice is a group of statements whose answers the server sends together. Without flush requests, the server keeps
// all answers until the last one, and a slow batch would look like a dead connection. However, flush requests cost
// time: for a batch of 500 small statements, a flush after each statement costs three quarters more time, a flush after
// 16 statements a tenth, and after 128 statements a fiftieth. So slices are short until the connection is known to be
// fast. Once the connection is known to be fast, the size of a slice is chosen so that a slice takes about the time
// perSlice.
const (
	leastSlice = 16
	mostSlice  = 128
	perSlice   = 4 * time.Millisecond
)

// sliceAfter returns the new slice size after n statements have taken the time took. If n is too small for a
// measurement, the result is the old size.
func sliceAfter(slice, n int, took time.Duration) int {
	if n < leastSlice {
		return slice
	}
	return min(max(leastSlice, int(time.Duration(n)*perSlice/max(took, 1))), mostSlice)
}

// The number of bytes of arguments that are collected before they are sent. With more bytes, the network buffers could
// fill up, and the send would last as long as the statements run.
const mostUnsent = 64 << 10

// transmit sends all prepared requests without waiting for an answer between two requests, and then reads the answers.
func (l *link) transmit(ctx context.Context, requests []*request) (failed int, err error) {
	ctx, w := l.startWait(ctx)
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
		if unsent += r.argumentBytes(); unsent > mostUnsent && err == nil {
			w.limitSend(requests[first : i+1])
			err = p.Flush()
			first, unsent = i+1, 0
		}
	}
	w.limitSend(requests[first:])
	if err == nil {
		err = p.Sync()
	}
	failed = none
	if err == nil {
		failed, err = l.readAnswers(p, requests, slice, w, t)
	}
	if err == nil { // after a failure, the later statements did not run
		l.known.slice = sliceAfter(slice, len(requests), time.Since(began))
	}
	if closing := p.Close(); err == nil {
		err = closing
	}
	if isOutdated(err) {
		l.known.stale = true
	}
	err = w.explain(ctx, err)
	t.end(err)
	return failed, err
}

// readAnswers reads the answers in order. The result failed is the index of the request that failed.
func (l *link) readAnswers(p *pgconn.Pipeline, requests []*request, slice int, w *wait, t *trace) (failed int, err error) {
	for i, r := range requests {
		if i%slice == 0 {
			w.limitNext(requests[i:min(i+slice, len(requests))])
		}
		t.startRead()
		err := l.answerOf(p, r, w)
		t.answer(err)
		if t != nil || r.callsHandler() {
			w.limitNext(requests[i+1 : min((i/slice+1)*slice, len(requests))])
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

// read passes the rows of an answer to the function r.read. The error of r.read becomes r.refusal. An error of the
// server for the statement comes when the result is closed.
func (l *link) read(reader *pgconn.ResultReader, r *request, w *wait) error {
	rows := pgx.RowsFromResultReader(l.conn.TypeMap(), reader)
	if r.callsHandler() {
		w.pause()
		rows = &awaitedRows{rows, w, []*request{r}}
	}
	defer rows.Close()
	return r.read(rows)
}

// callsHandler reports whether a callback of a handler reads the rows of the answer.
func (r *request) callsHandler() bool { return r.read != nil && r.limited }

// awaitedRows contains rows that a handler's callback reads. The timer for the server's answer runs only while the
// callback fetches the next row. Between two rows, the callback uses its own time.
type awaitedRows struct {
	pgx.Rows
	wait     *wait
	requests []*request
}

func (a *awaitedRows) Next() bool {
	a.wait.limitNext(a.requests)
	defer a.wait.pause()
	return a.Rows.Next()
}

func (a *awaitedRows) Close() {
	a.wait.limitNext(a.requests)
	defer a.wait.pause()
	a.Rows.Close()
}

func (r *request) argumentBytes() (n int) {
	for _, v := range r.values {
		n += len(v)
	}
	return n
}

// wait cancels a pipeline if the server does not answer for too long.
type wait struct {
	link   *link
	timer  *time.Timer // nil if only the context limits the time
	cancel context.CancelCauseFunc
}

var errSilent = errors.New("the server did not answer")

// startWait returns a context for a pipeline. The context ends when an expected answer does not arrive in
// time.
func (l *link) startWait(ctx context.Context) (context.Context, *wait) {
	w := &wait{link: l}
	if l.answer > 0 {
		ctx, w.cancel = context.WithCancelCause(ctx)
		w.timer = time.AfterFunc(l.answer, func() { w.cancel(errSilent) })
	}
	return ctx, w
}

// limitSend sets the time limit for sending requests. If the network buffers are full, the send lasts as long
// as the statements run.
func (w *wait) limitSend(requests []*request) { w.setLimit(requests, math.MaxInt64) }

// The shortest time limit for all statements of a slice together.
const leastAllowance = time.Minute

// limitNext sets the time limit for the answers to the next slice. All handlers' statements of a slice together get at
// most the limit of leastSlice statements, or leastAllowance if that is longer. A slice with more statements gets no
// more time, so that a dead connection is noticed early. A slice is longer only if earlier statements were fast, so a
// working connection is considered dead only if statements become thousands of times slower.
func (w *wait) limitNext(requests []*request) {
	w.setLimit(requests, max(leastSlice*w.link.statement, leastAllowance))
}

// setLimit sets the time limit for the answers to requests. The parameter most limits the time for those statements
// that have a limit of their own.
func (w *wait) setLimit(requests []*request, most time.Duration) {
	if w.timer == nil {
		return
	}
	d, bounded := w.link.allowance(requests, most)
	if !bounded { // no time limit is set for these statements
		w.timer.Stop()
		return
	}
	w.timer.Reset(d)
}

// allowance returns how long the answers to requests may take: the time limit for an answer (link.answer) for every
// sixteen of Semel's own statements, plus the limits of the handlers' statements. The result bounded is false if the
// handlers' statements have no time limit.
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

// explain returns err. If this wait ended the pipeline, explain adds the reason to err: the server did not answer.
func (w *wait) explain(ctx context.Context, err error) error {
	if err != nil && w.timer != nil && errors.Is(context.Cause(ctx), errSilent) {
		return fmt.Errorf("%w within %s after the time limit of its statements: %w", errSilent, w.link.answer, err)
	}
	return err
}
