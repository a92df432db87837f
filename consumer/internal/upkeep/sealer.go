package upkeep

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/admin"
)

// sealEvery is the interval at which a run searches for new audit records. sealWholeEvery is the interval at which a
// run searches the whole table of audit records.
const (
	sealEvery      = 5 * time.Second
	sealWholeEvery = time.Hour
)

// sealedAtOnce is the maximum number of audit records that one call adds to the audit chain, so that its transaction is
// short.
const sealedAtOnce = 500

// Sealer adds the audit records of operators' changes to a chain of hashes (sealing). Every process has a Sealer, and
// the store lets only one process at a time add records.
type Sealer struct {
	guard.Guard
	Store admin.Auditor
	Turns Turns
	// Key is the key for the hashes in the audit chain, or empty if there is no key.
	Key []byte

	whole time.Time // when the Sealer last looked at all audit records
	told  string    // the last logged error; empty if sealing works
}

// Task returns the task that adds audit records to the audit chain. The first run of the task is at a random time, so
// that processes that start together do not add records at the same time.
func (s *Sealer) Task() *Task {
	return &Task{at: time.Now().Add(sealEvery/2 + rand.N(sealEvery)), step: func(base context.Context) time.Duration {
		s.logCause(base, s.sealAll(base))
		return sealEvery
	}}
}

// sealAll adds to the audit chain all audit records that are not in it yet.
func (s *Sealer) sealAll(base context.Context) error {
	whole := s.whole.IsZero() || time.Since(s.whole) >= sealWholeEvery
	for {
		s.At(faults.BeforeSeal, 0)
		done, err := s.seal(base, whole)
		if err != nil || done.Elsewhere {
			return err
		}
		if s.At(faults.AfterSeal, done.Lines); done.Lines < sealedAtOnce {
			break
		}
	}
	if whole {
		s.whole = time.Now()
	}
	return nil
}

func (s *Sealer) seal(base context.Context, whole bool) (done admin.Sealed, err error) {
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	o := admin.Sealing{Key: s.Key, Continue: true, Most: sealedAtOnce, Whole: whole, At: func(lines int) { s.At(faults.WithinSeal, lines) }}
	err = s.Turns.Do(ctx, func() (err error) {
		done, err = s.Store.Seal(ctx, o)
		return err
	})
	return done, err
}

// logCause logs, once for each cause, why audit records cannot be added to the audit chain.
func (s *Sealer) logCause(base context.Context, err error) {
	switch {
	case base.Err() != nil:
	case err == nil:
		s.told = ""
	case s.told == err.Error():
	case errors.Is(err, semel.ErrState):
		s.told = err.Error()
		s.Logger.Error("changes by operators are recorded, but no longer sealed", "consumer", s.Consumer, "error", err)
	default:
		s.told = err.Error()
		s.Logger.Warn("changes by operators were not sealed; Semel tries again", "consumer", s.Consumer, "error", err)
	}
}
