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

// A slice is what the server answers together. Without being asked it keeps its
// answers until the last, and nobody could tell a slow batch from a dead
// connection; asking after each statement costs a batch of 500 small ones three
// quarters of its time again, after 16 a tenth, after 128 a fiftieth. So a slice
// is short until the connection is known to be fast, and then as long as what it
// answered last, for each statement, makes of perSlice.
const (
	leastSlice = 16
	mostSlice  = 128
	perSlice   = 4 * time.Millisecond
)

// sliceAfter is the slice that follows n statements which took so long together;
// too few say nothing.
func sliceAfter(slice, n int, took time.Duration) int {
	if n < leastSlice {
		return slice
	}
	return min(max(leastSlice, int(time.Duration(n)*perSlice/max(took, 1))), mostSlice)
}

// mostUnsent is how many bytes of arguments wait to be sent together. More at
// once could fill what the network holds; then the sending itself lasts as long
// as the statements.
const mostUnsent = 64 << 10

// transmit sends requests that are ready, all without waiting for an answer.
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
	if err == nil { // what failed says nothing about those that did not run
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

// answers reads the answers in order. The failure is of the request at failed.
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

var errNoAnswer = errors.New("pgxstore: the server sent something else than an answer")

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

// read gives the rows to whoever asked for them. What it says is its refusal,
// whatever kind of error that is: only closing the reader tells what the server
// said of this statement.
func (l *link) read(reader *pgconn.ResultReader, r *request, w *wait) error {
	rows := pgx.RowsFromResultReader(l.conn.TypeMap(), reader)
	if r.calls() {
		w.pause()
		rows = &awaited{rows, w, []*request{r}}
	}
	defer rows.Close()
	return r.read(rows)
}

// calls reports whether a callback of a handler reads the rows.
func (r *request) calls() bool { return r.read != nil && r.limited }

// awaited are rows that a callback reads: the server is waited for only while
// they are asked for the next. What the callback does between is its own time.
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

// size is how many bytes the arguments have.
func (r *request) size() (n int) {
	for _, v := range r.values {
		n += len(v)
	}
	return n
}

// wait ends the exchange of a pipeline when nothing was heard for too long.
type wait struct {
	link   *link
	timer  *time.Timer // nil if only the context ends it
	cancel context.CancelCauseFunc
}

var errSilent = errors.New("the server did not answer")

// waiting is a context for a pipeline that ends when what its wait expects next
// does not come.
func (l *link) waiting(ctx context.Context) (context.Context, *wait) {
	w := &wait{link: l}
	if l.answer > 0 {
		ctx, w.cancel = context.WithCancelCause(ctx)
		w.timer = time.AfterFunc(l.answer, func() { w.cancel(errSilent) })
	}
	return ctx, w
}

// sending gives what is about to be sent the time that it may take: when the
// network holds no more, that of the statements.
func (w *wait) sending(requests []*request) { w.give(requests, math.MaxInt64) }

// leastAllowance is what the statements of a slice may take together in any case.
const leastAllowance = time.Minute

// next gives what is expected next the time that it may take. A slice that is
// long, because its statements were fast, gets the time of the shortest one or
// a minute: a connection that falls silent is given up as early, and statements
// must have become thousands of times slower to be taken for that.
func (w *wait) next(requests []*request) {
	w.give(requests, max(leastSlice*w.link.statement, leastAllowance))
}

// give expects an answer in the time of the requests, of which those with a limit
// have so much together at most.
func (w *wait) give(requests []*request, most time.Duration) {
	if w.timer == nil {
		return
	}
	d, bounded := w.link.allowance(requests, most)
	if !bounded { // nobody knows how long they may take
		w.timer.Stop()
		return
	}
	w.timer.Reset(d)
}

// allowance is how long the answers to requests may take: an answer's time for
// each sixteen statements of Semel's own, and that of those with a limit.
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

// pause says that nothing is expected of the server for now.
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

// explain adds to an error that it was this wait which ended.
func (w *wait) explain(ctx context.Context, err error) error {
	if err != nil && w.timer != nil && errors.Is(context.Cause(ctx), errSilent) {
		return fmt.Errorf("%w for %s longer than its statements may take: %w", errSilent, w.link.answer, err)
	}
	return err
}
