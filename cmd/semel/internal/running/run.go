// Package running runs consumers side by side and counts what becomes of their
// deliveries.
package running

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/semel-go/semel"
)

// Consumer is what a consumer.Consumer can do, whatever its transactions are.
type Consumer interface {
	Run(ctx context.Context) error
	Counts() semel.Counts
	// Left is what is left when the run has ended idle.
	Left() []semel.Left
}

// All runs the consumers until each has ended: by itself, by an error, or
// because ctx is over and it has drained. The error joins those of the
// consumers, each with its name; one that fails does not stop the others.
func All(ctx context.Context, consumers map[string]Consumer) (Summary, error) {
	errs := make(chan error, len(consumers))
	var all sync.WaitGroup
	for name, c := range consumers {
		all.Go(func() {
			err := c.Run(ctx)
			if err != nil && !errors.Is(err, semel.ErrHalted) { // that one names the consumer
				err = fmt.Errorf("consumer %s: %w", name, err)
			}
			if err != nil {
				errs <- err
			}
		})
	}
	all.Wait()
	close(errs)
	s := Summary{Consumers: map[string]semel.Counts{}, Left: map[string][]semel.Left{}}
	for name, c := range consumers {
		s.Consumers[name] = c.Counts()
		if left := c.Left(); len(left) > 0 {
			s.Left[name] = left
		}
	}
	var joined []error
	for err := range errs {
		joined = append(joined, err)
	}
	return s, errors.Join(joined...)
}
