package pgxstore

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/store"
)

// mostRounds is how often the callbacks of a batch may queue what further
// callbacks read: one that always queues itself would hold its lane for ever.
const mostRounds = 100

var errEndless = &storeError{"the callbacks of a queue", store.ClassPermanent,
	fmt.Errorf("after %d rounds they still queue statements with callbacks; end the chain", mostRounds)}

var (
	errGoexit = errors.New("the callback ended its goroutine (runtime.Goexit)")
	errSlow   = errors.New("the callback ran longer than the handler's timeout")
)

// call runs a callback as handlers are run: a panic, the end of its goroutine
// and a time-out are failures of its message. It has a goroutine of its own, so
// that one that ends it does not end the batch's. One that does not return is cut
// off by who watches it, and waited for as a handler is: it may be at its rows.
func (b *queued) call(mark int, read func(pgx.Rows) error, rows pgx.Rows) error {
	began := time.Now()
	ended := func() {}
	if b.begins != nil {
		ended = b.begins(mark)
	}
	err := errGoexit
	var running worker.Group
	running.Go(func() {
		defer func() {
			if value := recover(); value != nil {
				err = fmt.Errorf("the callback panicked: %v\n%s", value, debug.Stack())
			}
		}()
		err = read(rows)
	})
	running.Wait()
	ended()
	late := b.statement > 0 && time.Since(began) > b.statement
	if late && (err == nil || b.state() == errCut) {
		return errSlow
	}
	return legible.Error(err, func(d *semel.HandlerError, readable error) error {
		return &semel.HandlerError{Decision: d.Decision, After: d.After, Reason: d.Reason, Err: readable}
	})
}

// reader is the mark of the last statement that waits for its rows.
func (b *queued) reader() int {
	mark := store.NoCulprit
	for _, s := range b.statements {
		if s.read != nil {
			mark = s.mark
		}
	}
	return mark
}
