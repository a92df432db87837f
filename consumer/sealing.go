package consumer

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/faults"
	"github.com/semel-go/semel/internal/admin"
)

// How often a run looks for acts of operators that are not sealed, and how often among all.
const (
	sealEvery      = 5 * time.Second
	sealWholeEvery = time.Hour
)

// sealedAtOnce is how many acts a call seals: the transaction is to be short.
const sealedAtOnce = 500

// sealing seals acts of operators. Every consumer of a store does it, and the store lets one
// process at a time do it.
type sealing struct {
	config  *settings
	auditor admin.Auditor
	beside  beside

	whole time.Time // when all acts were looked at last
	told  string    // why nothing is sealed
}

// newSealing returns nil if the store seals no acts.
func newSealing[Tx any](e *engine[Tx]) *sealing {
	auditor, able := e.store.(admin.Auditor)
	if !able || e.source == (noSource{ends: true}) {
		return nil
	}
	return &sealing{config: e.config, auditor: auditor, beside: e.control.beside}
}

// leastKey is how many bytes a key has at least: with fewer it could be guessed.
const leastKey = 32

func (c *Config) checkAuditKey(fault faultFunc) {
	if n := len(c.AuditKey); n > 0 && n < leastKey {
		fault("AuditKey", "a key of %d bytes could be guessed; give %d or more, at random", n, leastKey)
	}
}

// task begins at a random moment, so that processes that start together do not look together.
func (s *sealing) task() *task {
	return &task{at: time.Now().Add(sealEvery/2 + rand.N(sealEvery)), do: func(base context.Context) time.Duration {
		s.tell(base, s.pass(base))
		return sealEvery
	}}
}

// pass seals what there is to seal.
func (s *sealing) pass(base context.Context) error {
	whole := s.whole.IsZero() || time.Since(s.whole) >= sealWholeEvery
	for {
		s.config.guard.At(faults.BeforeSeal, 0)
		done, err := s.seal(base, whole)
		if err != nil || done.Elsewhere {
			return err
		}
		if s.config.guard.At(faults.AfterSeal, done.Lines); done.Lines < sealedAtOnce {
			break
		}
	}
	if whole {
		s.whole = time.Now()
	}
	return nil
}

func (s *sealing) seal(base context.Context, whole bool) (done admin.Sealed, err error) {
	ctx, cancel := context.WithTimeout(base, callTimeout)
	defer cancel()
	o := admin.Sealing{Key: s.config.AuditKey, Continue: true, Most: sealedAtOnce, Whole: whole, At: func(lines int) { s.config.guard.At(faults.WithinSeal, lines) }}
	err = s.beside.do(ctx, func() (err error) {
		done, err = s.auditor.Seal(ctx, o)
		return err
	})
	return done, err
}

// tell says once why nothing is sealed.
func (s *sealing) tell(base context.Context, err error) {
	switch {
	case base.Err() != nil:
	case err == nil:
		s.told = ""
	case s.told == err.Error():
	case errors.Is(err, semel.ErrState):
		s.told = err.Error()
		s.config.Logger.Error("acts of operators are recorded, and sealed no more", "consumer", s.config.Name, "error", err)
	default:
		s.told = err.Error()
		s.config.Logger.Warn("acts of operators were not sealed: that is tried again", "consumer", s.config.Name, "error", err)
	}
}
