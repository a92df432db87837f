package handlertest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// session is the state of one call of Run.
type session[Tx any] struct {
	start func(t T) Handler[Tx]
	t     T // of the current subtest
	// baseline is the result of a run without faults. compareErr is an error if other runs cannot be compared with the
	// baseline.
	baseline   *baseline
	compareErr error
}

// baseline is the result of a run without faults: which messages have an effect, and the text of Handler.Effect.
type baseline struct {
	effect, ledger string
	// acts contains the indexes of the messages that have an effect or call the provider. writes contains the indexes
	// of the messages that have an effect.
	acts, writes []int
	// received contains the messages as the handler got them.
	received map[int]*semel.Message
	steps    int // number of the handler's steps
	err      error
}

// scenario is a subtest. The function run of a scenario returns nil, the fault that was found, or a *NotRun.
type scenario[Tx any] struct {
	name  string
	group Group
	run   func(s *session[Tx]) error
	// checksBaseline is true for the scenarios that find out whether the results of two runs can be compared. All other
	// scenarios run only if results can be compared.
	checksBaseline bool
}

func (s *session[Tx]) run(t T, c scenario[Tx]) error {
	t.Helper()
	s.t = t
	if o := ordered(); o != nil && o.Test == t.Name() {
		return s.obey(o)
	}
	if s.baseline == nil {
		s.baseline = s.runWithoutFaults()
		if s.baseline.err == nil {
			s.compareErr = s.compareSecondRun()
		}
	}
	if !c.checksBaseline {
		if s.baseline.err != nil {
			return &NotRun{"the first delivery failed"}
		}
		if s.compareErr != nil {
			return &NotRun{"two undisturbed runs differ, so disturbed runs cannot be compared"}
		}
	}
	return c.run(s)
}

func (s *session[Tx]) world() *world[Tx] {
	s.t.Helper()
	return newWorld(s.t, s.start, rand.Text()[:12])
}

// runWithoutFaults delivers each message once, without faults, and returns the result.
func (s *session[Tx]) runWithoutFaults() *baseline {
	s.t.Helper()
	w := s.world()
	b := &baseline{steps: len(w.Steps)}
	for i := range w.Messages {
		before, charged := w.effect(), w.ledger()
		if err := w.deliverAndCheck(i, source.EndApplied, source.EndDiscarded, source.EndSkipped); err != nil {
			b.err = w.explainFailure(i, err)
			return b
		}
		if w.remark != nil {
			b.err = fmt.Errorf("%s: %w", w.name(i), w.remark)
			return b
		}
		writes := w.effect() != before
		if writes {
			b.writes = append(b.writes, i)
		}
		if writes || w.ledger() != charged {
			b.acts = append(b.acts, i)
		}
	}
	b.effect, b.ledger, b.received = w.effect(), w.ledger(), w.received
	switch {
	case len(b.acts) == 0:
		b.err = errors.New(saysNoEffect)
	case w.Provider != nil:
		b.err = w.Provider.keyless()
	}
	return b
}

// compareSecondRun returns an error if the result of a second run without faults differs from the first result.
func (s *session[Tx]) compareSecondRun() error {
	s.t.Helper()
	b := s.runWithoutFaults()
	switch {
	case b.err != nil:
		return fmt.Errorf("a second undisturbed run failed: %w", b.err)
	case b.ledger != s.baseline.ledger:
		return errors.New(saysRandomCall + describeDifference(b.ledger, s.baseline.ledger))
	case b.effect != s.baseline.effect:
		return errors.New(saysRandom + describeDifference(b.effect, s.baseline.effect))
	}
	return nil
}

// same compares the effects in a test world with the result of the run without faults. If they differ, the error has
// the text of the parameter what.
func (s *session[Tx]) same(w *world[Tx], what string, values ...any) error {
	s.t.Helper()
	if got := w.effect(); got != s.baseline.effect {
		return errors.New(fmt.Sprintf(what, values...) + describeDifference(got, s.baseline.effect))
	}
	if got := w.ledger(); got != s.baseline.ledger {
		return errors.New(saysCharged + fmt.Sprintf(what, values...) + describeDifference(got, s.baseline.ledger))
	}
	return nil
}

// unchanged returns an error if there is an effect that must not exist.
func unchanged[Tx any](w *world[Tx], before, what string, values ...any) error {
	w.t.Helper()
	if got := w.effect(); got != before {
		return errors.New(fmt.Sprintf(what, values...) + describeDifference(got, before))
	}
	return nil
}

// mostShown is the number of bytes of an effect in the text of a failure.
const mostShown = 300

func describeDifference(got, want string) string {
	return "\n  effect:   " + quoteShort(got) + "\n  expected: " + quoteShort(want)
}

func quoteShort(text string) string {
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

// eachMessage calls f for each message, stops at the first error and returns that error.
func eachMessage[Tx any](w *world[Tx], f func(i int) error) error {
	for i := range w.Messages {
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

// acks returns the outcomes with which a redelivery is acked.
func acks() []source.End {
	return []source.End{source.EndApplied, source.EndDuplicate, source.EndDiscarded, source.EndSkipped, source.EndWaiting}
}

// finish processes the inbox if messages may wait in the inbox for earlier versions.
func (w *world[Tx]) finish() error {
	if w.Config.Version == nil {
		return nil
	}
	return w.work()
}
