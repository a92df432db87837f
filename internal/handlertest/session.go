package handlertest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// session is one Run.
type session[Tx any] struct {
	start func(t T) Handler[Tx]
	t     T // of the subtest that runs
	// base is what an undisturbed run does. repeated is why other runs cannot be compared with it.
	base     *baseline
	repeated error
}

// baseline records an undisturbed run: which messages have an effect, and what Handler.Effect
// returned.
type baseline struct {
	effect, ledger string
	// acts are the indexes of the messages that have an effect.
	acts []int
	// seen are the messages as the handler got them.
	seen map[int]*semel.Message
	err  error
}

// scenario is a subtest. run returns what it found, or a *NotRun.
type scenario[Tx any] struct {
	name  string
	group Group
	run   func(s *session[Tx]) error
	// alone scenarios find out whether runs can be compared; all others need that they can.
	alone bool
}

func (s *session[Tx]) run(t T, c scenario[Tx]) error {
	t.Helper()
	s.t = t
	if o := ordered(); o != nil && o.Test == t.Name() {
		return s.obey(o)
	}
	if s.base == nil {
		s.base = s.undisturbed()
		if s.base.err == nil {
			s.repeated = s.again()
		}
	}
	if !c.alone {
		if s.base.err != nil {
			return &NotRun{"the first delivery failed"}
		}
		if s.repeated != nil {
			return &NotRun{"two undisturbed runs differ, so disturbed runs cannot be compared"}
		}
	}
	return c.run(s)
}

func (s *session[Tx]) world() *world[Tx] {
	s.t.Helper()
	return newWorld(s.t, s.start, rand.Text()[:12])
}

// undisturbed delivers each message once.
func (s *session[Tx]) undisturbed() *baseline {
	s.t.Helper()
	w, b := s.world(), &baseline{}
	for i := range w.Messages {
		before := w.effect() + w.ledger()
		if err := w.applies(i, source.EndApplied, source.EndDiscarded, source.EndSkipped); err != nil {
			b.err = w.explained(i, err)
			return b
		}
		if w.remark != nil {
			b.err = fmt.Errorf("%s: %w", w.name(i), w.remark)
			return b
		}
		if w.effect()+w.ledger() != before {
			b.acts = append(b.acts, i)
		}
	}
	b.effect, b.ledger, b.seen = w.effect(), w.ledger(), w.seen
	switch {
	case len(b.acts) == 0:
		b.err = errors.New(saysNoEffect)
	case w.Provider != nil:
		b.err = w.Provider.keyless()
	}
	return b
}

// again reports how a second undisturbed run differs from the first.
func (s *session[Tx]) again() error {
	s.t.Helper()
	b := s.undisturbed()
	switch {
	case b.err != nil:
		return fmt.Errorf("a second undisturbed run failed: %w", b.err)
	case b.ledger != s.base.ledger:
		return errors.New(saysRandomCall + differ(b.ledger, s.base.ledger))
	case b.effect != s.base.effect:
		return errors.New(saysRandom + differ(b.effect, s.base.effect))
	}
	return nil
}

// same compares a world with the undisturbed run. what says what happened and how to fix it.
func (s *session[Tx]) same(w *world[Tx], what string, values ...any) error {
	s.t.Helper()
	if got := w.effect(); got != s.base.effect {
		return errors.New(fmt.Sprintf(what, values...) + differ(got, s.base.effect))
	}
	if got := w.ledger(); got != s.base.ledger {
		return errors.New(saysCharged + fmt.Sprintf(what, values...) + differ(got, s.base.ledger))
	}
	return nil
}

// unchanged reports an effect that should not be there.
func unchanged[Tx any](w *world[Tx], before, what string, values ...any) error {
	w.t.Helper()
	if got := w.effect(); got != before {
		return errors.New(fmt.Sprintf(what, values...) + differ(got, before))
	}
	return nil
}

// mostShown is how many bytes of an effect a failure shows.
const mostShown = 300

func differ(got, want string) string {
	return "\n  effect:   " + shown(got) + "\n  expected: " + shown(want)
}

func shown(text string) string {
	if len(text) > mostShown {
		text = text[:mostShown] + "…"
	}
	return fmt.Sprintf("%q", strings.TrimSpace(text))
}

func (w *world[Tx]) ledger() string {
	if w.Provider == nil {
		return ""
	}
	return w.Provider.ledger()
}

// eachMessage calls f for each message and returns its first error.
func eachMessage[Tx any](w *world[Tx], f func(i int) error) error {
	for i := range w.Messages {
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

// acks are the outcomes of a redelivery that is settled.
func acks() []source.End {
	return []source.End{source.EndApplied, source.EndDuplicate, source.EndDiscarded, source.EndSkipped, source.EndWaiting}
}

// finish works off the inbox if messages may wait there for earlier versions.
func (w *world[Tx]) finish() error {
	if w.Config.Version == nil {
		return nil
	}
	return w.work()
}
