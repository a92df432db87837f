package handlertest

import (
	"context"
	"errors"
	"fmt"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/store"
)

// The names of subtests that the report compares.
const (
	rollbackName = "rollback and second run"
	orderName    = "other order"
)

// cases returns all subtests. If several subtests find the same fault, the subtest with the most precise error comes
// first.
func cases[Tx any]() []scenario[Tx] {
	all := []scenario[Tx]{
		{name: "first delivery", group: First, run: func(s *session[Tx]) error { return s.baseline.err }, checksBaseline: true},
		{name: "two undisturbed runs", group: First, run: repeatable[Tx], checksBaseline: true},
		{name: "second attempt", group: Redelivery, run: secondAttempt[Tx]},
		{name: "failed transaction", group: Redelivery, run: failedTransaction[Tx]},
		{name: rollbackName, group: Redelivery, run: rolledBack[Tx]},
		{name: "rerun of a success", group: Redelivery, run: rerun[Tx]},
		{name: "duplicate after success", group: Duplicates, run: duplicate[Tx]},
		{name: "concurrent duplicates", group: Duplicates, run: concurrent[Tx]},
	}
	for _, p := range []point{atBegin, atMark, beforeHandle, afterHandle, atCommit} {
		all = append(all, scenario[Tx]{name: "crash " + string(p), group: BeforeCommit, run: func(s *session[Tx]) error { return crashAtPoint(s, p) }})
	}
	for _, p := range []point{atReply, beforeAck} {
		all = append(all, scenario[Tx]{name: "crash " + string(p), group: AfterCommit, run: func(s *session[Tx]) error { return crashAtPoint(s, p) }})
	}
	return append(all,
		scenario[Tx]{name: "process killed before COMMIT", group: BeforeCommit, run: func(s *session[Tx]) error { return killed(s, atCommit) }},
		scenario[Tx]{
			name: "process killed after COMMIT, before the ack", group: AfterCommit,
			run: func(s *session[Tx]) error { return killed(s, beforeAck) },
		},
		scenario[Tx]{name: "COMMIT reply lost, no crash", group: AfterCommit, run: replyLost[Tx]},
		scenario[Tx]{name: "connection cut before COMMIT", group: BeforeCommit, run: cutConnections[Tx]},
		scenario[Tx]{name: "poison message", group: Poison, run: poison[Tx]},
		scenario[Tx]{name: "conflict", group: Duplicates, run: conflict[Tx]},
		scenario[Tx]{name: orderName, group: Redelivery, run: reordered[Tx]},
		scenario[Tx]{name: "dead-letter retry", group: DeadLetters, run: deadLetter[Tx]},
		scenario[Tx]{name: "old version", group: Versions, run: oldVersion[Tx]},
		scenario[Tx]{name: "future version", group: Versions, run: futureVersion[Tx]},
		scenario[Tx]{name: "retention expired", group: Retention, run: expired[Tx]},
		scenario[Tx]{name: "provider loses the answer", group: Calls, run: func(s *session[Tx]) error { return failProviderCall(s, loseAnswer) }},
		scenario[Tx]{name: "provider times out after the charge", group: Calls, run: func(s *session[Tx]) error { return failProviderCall(s, timeOut) }},
		scenario[Tx]{name: "provider refuses once", group: Calls, run: func(s *session[Tx]) error { return failProviderCall(s, refuse) }},
		scenario[Tx]{name: "provider forgets keys", group: Calls, run: forgotten[Tx]},
		scenario[Tx]{name: "replay without effects", group: Calls, run: replayed[Tx]},
	)
}

func repeatable[Tx any](s *session[Tx]) error {
	switch {
	case s.baseline.err != nil:
		return &NotRun{"the first delivery failed"}
	case s.compareErr != nil || s.baseline.steps == 0:
		return s.compareErr
	}
	w := s.world()
	if err := w.deliverAll(); err != nil {
		return err
	}
	return s.same(w, saysTurns)
}

var errInjected = errors.New("semeltest: this run fails on purpose")

// failOnce makes the next run of the handler, or the first run of each step, fail with err, before or after the call of
// the user's handler.
func failOnce[Tx any](w *world[Tx], where point, err error) {
	done := false
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interfere = func(at point, m *semel.Message) error {
		first := !done
		if len(w.Steps) > 0 {
			first = m.Attempt == 1
		}
		if !first || at != where {
			return nil
		}
		done = true
		return err
	}
}

func secondAttempt[Tx any](s *session[Tx]) error {
	w := s.world()
	err := eachMessage(w, func(i int) error {
		failOnce(w, beforeHandle, errInjected)
		if _, err := w.deliverOne(i); err != nil {
			return err
		}
		w.attempt = 2
		defer func() { w.attempt = 0 }()
		return w.retried(i)
	})
	if err != nil {
		return err
	}
	return s.same(w, saysAttempt)
}

// failedTransaction runs the handler with a transaction that has ended already. If the handler returns nil, there are
// two possible faults. If the effect of the handler exists, the handler wrote the effect outside of the transaction. If
// the effect does not exist, the handler has ignored the errors of its transaction.
func failedTransaction[Tx any](s *session[Tx]) error {
	if len(s.baseline.writes) == 0 {
		return &NotRun{"the handler only calls the provider"}
	}
	w := s.world()
	for _, i := range s.baseline.writes {
		before := w.effect()
		b, _, err := w.Store.Begin(s.t.Context(), store.TxOptions{}, nil)
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		if _, queues := b.(admin.QueuedStatements); queues {
			b.Rollback(s.t.Context())
			return &NotRun{"handlers of this store queue their statements and do not see errors"}
		}
		tx := b.Tx(store.All)
		b.Rollback(s.t.Context())
		if err := callGuarded(s.t.Context(), tx, clone(s.baseline.received[i]), w.Handle); err != nil {
			continue
		}
		if err := unchanged(w, before, saysNotInTx, w.name(i)); err != nil {
			return err
		}
		return fmt.Errorf(saysSwallowed, w.name(i))
	}
	return nil
}

// callGuarded calls a handler. If the handler panics, callGuarded returns an error.
func callGuarded[Tx any](ctx context.Context, tx Tx, m *semel.Message, handle func(context.Context, Tx, *semel.Message) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the handler panicked: %v", r)
		}
	}()
	return handle(ctx, tx, m)
}

func rolledBack[Tx any](s *session[Tx]) error {
	w := s.world()
	err := eachMessage(w, func(i int) error {
		before := w.effect()
		failOnce(w, afterHandle, errInjected)
		if _, err := w.deliverOne(i); err != nil {
			return err
		}
		if err := unchanged(w, before, saysRemains, w.name(i)); err != nil {
			return err
		}
		return w.retried(i)
	})
	if err != nil {
		return err
	}
	return s.same(w, saysMemory)
}

// rerun runs the handler again for applied messages, in transactions that are rolled back.
func rerun[Tx any](s *session[Tx]) error {
	w := s.world()
	return eachMessage(w, func(i int) error {
		if err := w.deliverAndCheck(i, acks()...); err != nil {
			return err
		}
		before := w.effect()
		b, _, err := w.Store.Begin(s.t.Context(), store.TxOptions{}, nil)
		if err != nil {
			return fmt.Errorf("begin: %w", err)
		}
		if m := w.received[i]; m != nil {
			_ = callGuarded(s.t.Context(), b.Tx(store.All), clone(m), w.Handle) // the second run may fail, for example because of a unique key
		}
		b.Rollback(s.t.Context())
		return unchanged(w, before, saysRemains, w.name(i))
	})
}

// advice returns a text for the user: what to change if a redelivery has an effect.
func (w *world[Tx]) advice() string {
	if w.Config.Strategy == consumer.StrategyNatural {
		return "StrategyNatural writes no marker, so the handler itself must be idempotent: use an upsert or a version guard, or StrategyMarker"
	}
	return "check that Config.Identity finds the same id in each copy, and that the handler writes through tx"
}

func duplicate[Tx any](s *session[Tx]) error {
	w := s.world()
	err := eachMessage(w, func(i int) error {
		for range 3 {
			if err := w.deliverAndCheck(i, acks()...); err != nil {
				return err
			}
		}
		_, err := w.deliver(w.Messages[i], w.Messages[i])
		return err
	})
	if err != nil {
		return err
	}
	return s.same(w, saysTwice, "each message was delivered five times", w.advice())
}

// deliveries is the number of copies that are delivered at the same time.
const deliveries = 4

func concurrent[Tx any](s *session[Tx]) error {
	w := s.world()
	other := w.newConsumer(nil)
	defer func() { _ = other.Close(context.Background()) }()
	err := eachMessage(w, func(i int) error {
		var all worker.Group
		errs := make([]error, deliveries)
		for n := range errs {
			process := []*consumer.Consumer[Tx]{w.process, other}[n%2]
			all.Go(func() { errs[n] = w.untilAcked(process, i) })
		}
		all.Wait()
		return errors.Join(errs...)
	})
	if err != nil {
		return err
	}
	return s.same(w, saysTwice, "copies of each message were processed at the same time by two processes", w.advice())
}

// untilAcked delivers message i to a process again and again until the message is acked, as a broker does.
func (w *world[Tx]) untilAcked(process *consumer.Consumer[Tx], i int) error {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	attempt := process.Process
	if len(w.Steps) > 0 {
		attempt = func(ctx context.Context, m *semel.Message) (consumer.Disposition, error) {
			all, err := w.runSteps(ctx, []*semel.Message{m})
			return all[0], err
		}
	}
	for {
		d, err := attempt(ctx, clone(w.Messages[i]))
		switch {
		case err != nil:
			return fmt.Errorf("%s has no outcome: %w", w.name(i), err)
		case d.Kind == semel.Ack:
			return nil
		case d.Charged:
			return fmt.Errorf("%s failed while a copy of it was processed: %w", w.name(i), w.handlerError())
		}
	}
}

// crashAtPoint crashes the process at a point, once for each message or each of its steps, and restarts it.
func crashAtPoint[Tx any](s *session[Tx], p point) error {
	w := s.world()
	err := eachMessage(w, func(i int) error {
		before := w.effect()
		w.plan.set(func(q *plan) { q.crash = p })
		_, _ = w.deliverOne(i) // the process that would get the result has crashed
		if p != atReply && p != beforeAck {
			if err := unchanged(w, before, saysRemains, w.name(i)); err != nil {
				return err
			}
		}
		w.boot()
		for range w.lastStep() {
			w.plan.set(func(q *plan) {
				if q.crash = p; p != atReply && p != beforeAck {
					q.skip = 1 // the step of the last crash runs first
				}
			})
			_, _ = w.deliverOne(i)
			w.boot()
		}
		return w.deliverAndCheck(i, acks()...)
	})
	if err != nil {
		return err
	}
	return s.same(w, saysTwice, "the process crashed once for each message "+string(p)+" and was restarted", w.advice())
}

// replyLost loses the reply of a COMMIT for each message, in a process that does not crash.
func replyLost[Tx any](s *session[Tx]) error {
	w := s.world()
	err := eachMessage(w, func(i int) error {
		w.plan.set(func(q *plan) { q.crash, q.skip, q.recovers = atReply, i%(w.lastStep()+1), true })
		return w.retried(i)
	})
	if err != nil {
		return err
	}
	return s.same(w, saysTwice, "the reply of each COMMIT was lost", w.advice())
}

// cutConnections cuts the connection of each transaction, in a process that does not crash.
func cutConnections[Tx any](s *session[Tx]) error {
	w := s.world()
	if w.Store.Limits().SingleWriter {
		return &NotRun{"the store has no connections to a server"}
	}
	err := eachMessage(w, func(i int) error {
		before := w.effect()
		w.plan.set(func(q *plan) { q.crash, q.recovers = atCut, true })
		d, err := w.deliverOne(i)
		if err != nil {
			return err
		}
		if d.Kind != semel.Ack { // the COMMIT may be faster than the end of the connection
			if err := unchanged(w, before, saysRemains, w.name(i)); err != nil {
				return err
			}
		}
		return w.retried(i)
	})
	if err != nil {
		return err
	}
	return s.same(w, saysTwice, "the connection of each message was cut before its COMMIT", w.advice())
}
