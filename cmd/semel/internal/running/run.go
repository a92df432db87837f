// Package running runs several consumers in parallel and counts the outcomes of their deliveries.
package running

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
)

// Consumer has the methods of consumer.Consumer that do not depend on the transaction type.
type Consumer interface {
	Run(ctx context.Context) error
	Counts() semel.Counts
	// Unfinished returns the messages that are unfinished after a run stopped because it was idle.
	Unfinished() []semel.Unfinished
}

// All runs the consumers until all of them have ended. A consumer ends by itself, with an error, or after a
// drain when ctx ends. The returned error joins the errors of the consumers, each with the consumer's name.
//
// If a consumer fails, All logs the error immediately, and again every minute while other consumers run. The
// parameter log may be nil. If stops returns true for a failed consumer, All drains the other consumers. The
// parameter stops may be nil.
func All(ctx context.Context, consumers map[string]Consumer, log *slog.Logger, stops func(consumer string) bool) (Summary, error) {
	over, end := context.WithCancel(context.Background())
	defer end()
	ctx, drain := context.WithCancel(ctx)
	defer drain()
	errs := make(chan error, len(consumers))
	var all sync.WaitGroup
	for name, c := range consumers {
		all.Go(func() {
			err := c.Run(ctx)
			if err != nil && !errors.Is(err, semel.ErrHalted) && !namesConsumer(err, name) {
				err = fmt.Errorf("consumer %s: %w", name, err)
			}
			if err != nil {
				logFailure(over, log, name, err)
				errs <- err
				if stops != nil && stops(name) {
					if log != nil && len(consumers) > 1 && ctx.Err() == nil {
						log.Error("a consumer with on_failure: exit failed; the other consumers are drained and the process ends", "consumer", name)
					}
					drain()
				}
			}
		})
	}
	all.Wait()
	end()
	close(errs)
	s := Summary{Consumers: map[string]semel.Counts{}, Left: map[string][]semel.Unfinished{}}
	for name, c := range consumers {
		s.Consumers[name] = c.Counts()
		if left := c.Unfinished(); len(left) > 0 {
			s.Left[name] = left
		}
	}
	var joined []error
	for err := range errs {
		joined = append(joined, err)
	}
	return s, errors.Join(joined...)
}

// namesConsumer reports whether the text of an error begins with the name of the consumer.
func namesConsumer(err error, consumer string) bool {
	text := strings.TrimPrefix(err.Error(), "semel: ")
	for _, who := range []string{consumer, strconv.Quote(consumer)} {
		if rest, named := strings.CutPrefix(text, "consumer "+who); named && (rest == "" || strings.ContainsRune(": ", rune(rest[0]))) {
			return true
		}
	}
	return false
}

// failedEvery is the interval at which the failure of a consumer is logged again.
const failedEvery = time.Minute

// logFailure logs the failure of a consumer, and repeats the log line until the run ends. If a bounded source ended
// with unfinished messages, logFailure logs nothing, because the command reports unfinished messages itself.
func logFailure(ctx context.Context, log *slog.Logger, name string, err error) {
	if log == nil || errors.Is(err, semel.ErrUnfinished) || errors.Is(err, context.Canceled) || ctx.Err() != nil {
		return
	}
	log.Error("the consumer has stopped and is not restarted; fix the cause and restart the process", "consumer", name, "error", err)
	time.AfterFunc(failedEvery, func() { logFailure(ctx, log, name, err) })
}
