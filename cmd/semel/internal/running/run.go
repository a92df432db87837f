// Package running runs consumers side by side and counts what becomes of their
// deliveries.
package running

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/semel-go/semel"
)

// Consumer is what a consumer.Consumer can do, whatever its transactions are.
type Consumer interface {
	Run(ctx context.Context) error
	Counts() semel.Counts
	// Unfinished is what is left when the run has ended idle.
	Unfinished() []semel.Unfinished
}

// All runs the consumers until each has ended: by itself, by an error, or
// because ctx is over and it has drained. The error joins those of the
// consumers, each with its name. Of a consumer that fails, log, if not nil, has an error
// at once, and one a minute while others run. The others are drained if stops, which may be
// nil, says so of the consumer that failed.
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
			if err != nil && !errors.Is(err, semel.ErrHalted) && !strings.HasPrefix(err.Error(), "consumer "+name) {
				err = fmt.Errorf("consumer %s: %w", name, err)
			}
			if err != nil {
				logFailure(over, log, name, err)
				errs <- err
				if stops != nil && stops(name) {
					if log != nil && len(consumers) > 1 && ctx.Err() == nil {
						log.Error("the other consumers are drained, and the process ends: a consumer failed whose policy says on_failure: exit", "consumer", name)
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

// failedEvery is how often the log has it that the run of a consumer has ended by an error.
const failedEvery = time.Minute

// logFailure logs that the run of a consumer has ended by an error, now and until over ends.
// A run whose source ended with something left is the command's error only.
func logFailure(over context.Context, log *slog.Logger, name string, err error) {
	if log == nil || errors.Is(err, semel.ErrUnfinished) || errors.Is(err, context.Canceled) || over.Err() != nil {
		return
	}
	log.Error("the consumer's run has ended, and it is not started again; restart the process when the cause is mended", "consumer", name, "error", err)
	time.AfterFunc(failedEvery, func() { logFailure(over, log, name, err) })
}
