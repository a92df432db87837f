package assembly

import (
	"context"
	"errors"
	"sync"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// outcome is the result of a consumer's run.
type outcome struct {
	mutex sync.Mutex
	err   error // guarded by mutex
}

func (o *outcome) set(err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.err = err
}

func (o *outcome) get() error {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.err
}

// Ready returns the result of the consumer's Ready method. After the run has ended with an error, Ready
// returns false and the error.
func (r *Runner) Ready() (bool, string) {
	if err := r.outcome.get(); err != nil {
		return false, "its run has ended: " + err.Error()
	}
	return r.Consumer.Ready()
}

// Alive returns the result of the consumer's Alive method. If the run ended with an error that must end the
// process, Alive returns false, because only a restart can then help.
func (r *Runner) Alive() (bool, string) {
	err := r.outcome.get()
	switch {
	case err == nil:
		return r.Consumer.Alive()
	case !r.EndsProcess():
		return true, ""
	}
	return false, "its run has ended: " + err.Error()
}

// EndsProcess reports whether the run ended with an error that must end the process. The policy (on_failure:
// continue) or an operator can decide that the process continues.
func (r *Runner) EndsProcess() bool {
	switch err := r.outcome.get(); {
	case err == nil, r.continueOnFailure:
		return false
	case errors.Is(err, semel.ErrHalted), errors.Is(err, semel.ErrBehind), errors.Is(err, semel.ErrUnfinished), errors.Is(err, context.Canceled):
		return false
	}
	return true
}

// SourceKind implements metrics.Consumer.
func (r *Runner) SourceKind() string { return r.kind }

// Lanes implements metrics.Consumer.
func (r *Runner) Lanes() *metrics.Lanes { return lanesOf(r.source) }

func (t *generationalConsumer) laneCounts() *metrics.Lanes { return lanesOf(t.current().source) }

// lanesOf returns figures about the lanes of a source, or nil if the source has no such figures.
func lanesOf(source any) *metrics.Lanes {
	if s, ok := source.(interface{ laneCounts() *metrics.Lanes }); ok {
		return s.laneCounts()
	}
	return nil
}

// laneCounts returns the figures of all partitions together.
func (l *lanes) laneCounts() *metrics.Lanes {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := &metrics.Lanes{Behind: -1}
	for _, s := range l.known {
		if n := s.lag(); n >= 0 {
			out.Behind = max(out.Behind, 0) + n
		}
		if s.HeldUp {
			out.HeldUp++
		}
		if s.Fault != nil {
			out.Standing++
		}
	}
	return out
}

// SourceKind returns the kind of a consumer's source.
func (a *Assembly) SourceKind(c *policy.Consumer) string {
	switch s := a.policy.Source(c.From); {
	case c.From == "" || s == nil:
		return "none"
	case s.Kafka != nil:
		return "kafka"
	case s.Webhook != nil:
		return "webhook"
	}
	return "file"
}

// Sampled returns the stores that metrics can sample.
func (a *Assembly) Sampled() []metrics.Store {
	var all []metrics.Store
	for _, s := range a.Stores {
		all = append(all, s)
	}
	return all
}

// Connections implements metrics.Store.
func (d *postgres) Connections() (used, idle, most int) {
	s := d.pool.Stat()
	return int(s.AcquiredConns()), int(s.IdleConns()), int(s.MaxConns())
}

// Connections implements metrics.Store.
func (d *sqlite) Connections() (used, idle, most int) {
	s := d.db.Stats()
	return s.InUse, s.Idle, s.MaxOpenConnections
}

// Observe adds an observer to consumers that are created later.
func (a *Assembly) Observe(o semel.Observer) {
	a.options.Observers = append(a.options.Observers, o)
}
