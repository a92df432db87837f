package assembly

import (
	"context"
	"errors"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/measure"
	"github.com/semel-go/semel/source"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/timing"
)

// waitingConsumer is a consumer whose Redis store was unavailable at the start. Whether the server keeps keys durably
// is unknown until Redis responds, so Run waits for the store first. Other consumers run while Run waits.
type waitingConsumer struct {
	name, store string
	logger      *slog.Logger
	// make creates the consumer when the store is available.
	make func(context.Context) (Consumer, error)

	mutex sync.Mutex
	made  Consumer // nil until the store is available; guarded by mutex
	why   error    // the latest connection error; guarded by mutex
	// firstFailure is the time of the first failure; guarded by mutex.
	firstFailure time.Time
}

// The delays between attempts to connect to Redis.
const (
	firstAwait = time.Second
	mostAwait  = 15 * time.Second
	// responseTimeout is the timeout of one attempt to connect.
	responseTimeout = 15 * time.Second
)

// orWaiting creates a consumer. If the store is unavailable, orWaiting returns w, whose Run waits for the
// store.
func (a *Assembly) orWaiting(ctx context.Context, w *waitingConsumer) (Consumer, error) {
	made, err := w.try(ctx)
	if err == nil || ctx.Err() != nil || !isTransient(err) {
		return made, err
	}
	w.logger.Warn("the store is unavailable; the consumer fetches nothing until it is available", "consumer", w.name, "store", w.store, "error", err)
	return w, nil
}

func (w *waitingConsumer) try(ctx context.Context) (Consumer, error) {
	trying, cancel := context.WithTimeout(ctx, responseTimeout)
	defer cancel()
	made, err := w.make(trying)
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.made, w.why = made, err; w.firstFailure.IsZero() {
		w.firstFailure = time.Now()
	}
	return made, err
}

// await waits until the store is available and returns the consumer. If ctx ends before the store is
// available, await returns nil.
func (w *waitingConsumer) await(ctx context.Context) (Consumer, error) {
	began := time.Now()
	for wait := firstAwait; timing.Wait(ctx, wait); wait = min(2*wait, mostAwait) {
		switch made, err := w.try(ctx); {
		case err == nil:
			w.logger.Info("the store is available", "consumer", w.name, "store", w.store, "after", time.Since(began).Round(time.Second))
			return made, nil
		case ctx.Err() == nil && !isTransient(err):
			return nil, err
		}
	}
	return nil, nil
}

// Run implements Consumer. If ctx ends before the store is available, Run returns no error, because no
// message was fetched.
func (w *waitingConsumer) Run(ctx context.Context) error {
	made, err := w.await(ctx)
	if made == nil {
		return err
	}
	return made.Run(ctx)
}

// Work implements Consumer.
func (w *waitingConsumer) Work(ctx context.Context, numbers ...int64) error {
	made, err := w.await(ctx)
	if made == nil {
		return err
	}
	return made.Work(ctx, numbers...)
}

func (w *waitingConsumer) availableConsumer() (Consumer, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.made, w.why
}

// Counts implements Consumer.
func (w *waitingConsumer) Counts() semel.Counts {
	if made, _ := w.availableConsumer(); made != nil {
		return made.Counts()
	}
	return semel.Counts{}
}

// Unfinished implements Consumer.
func (w *waitingConsumer) Unfinished() []semel.Unfinished {
	if made, _ := w.availableConsumer(); made != nil {
		return made.Unfinished()
	}
	return nil
}

// Ready implements Consumer.
func (w *waitingConsumer) Ready() (bool, string) {
	made, why := w.availableConsumer()
	if made != nil {
		return made.Ready()
	}
	return false, "store: " + why.Error()
}

// Alive implements Consumer. A consumer that waits for its store is alive.
func (w *waitingConsumer) Alive() (bool, string) {
	if made, _ := w.availableConsumer(); made != nil {
		return made.Alive()
	}
	return true, ""
}

// StoreDown implements Consumer.
func (w *waitingConsumer) StoreDown() (time.Time, string) {
	made, why := w.availableConsumer()
	if made != nil {
		return made.StoreDown()
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.firstFailure, "store: " + why.Error()
}

// Load implements Consumer.
func (w *waitingConsumer) Load() measure.Load {
	if made, _ := w.availableConsumer(); made != nil {
		return made.Load()
	}
	return measure.Load{}
}

// transientCodes lists the Redis error codes of conditions that end without an operator's help.
var transientCodes = []string{"LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "READONLY"}

// isTransient reports whether the cause of an error can end without an operator's help, for example
// if the server is down or loads its data. A wrong password, a wrong certificate or a server without
// persistence needs an operator.
func isTransient(err error) bool {
	var refusal *rueidis.RedisError
	if errors.As(err, &refusal) {
		code, _, _ := strings.Cut(refusal.Error(), " ")
		return slices.Contains(transientCodes, code)
	}
	var network net.Error
	return errors.As(err, &network) || slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, rueidis.ErrClosing, rueidis.ErrNoSlot}, func(is error) bool {
		return errors.Is(err, is)
	})
}

// Preview implements Consumer.
func (w *waitingConsumer) Preview(ctx context.Context, all []source.Delivery) ([]admin.Prediction, error) {
	made, err := w.await(ctx)
	if made == nil {
		return nil, err
	}
	return made.Preview(ctx, all)
}
