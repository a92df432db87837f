package handlertest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/source"
	"github.com/semel-go/semel/store"
)

// poison makes the last message fail permanently, in a batch with all other messages.
func poison[Tx any](s *session[Tx]) error {
	expected := s.world()
	last := len(expected.Messages) - 1
	switch {
	case last == 0:
		return &NotRun{"there is only one message"}
	case !expected.hasInbox:
		return &NotRun{"the store has no inbox in which a message could be parked"}
	}
	for i := range last {
		if err := expected.deliverAndCheck(i, acks()...); err != nil {
			return err
		}
	}
	want := expected.effect() // before the next world, which may empty the same tables
	w := s.world()
	w.interfere = func(at point, m *semel.Message) error {
		if at == afterHandle && w.number(m) == last {
			return semel.Permanent(errInjected)
		}
		return nil
	}
	if err := w.deliverAll(); err != nil {
		return err
	}
	return unchanged(w, want, saysPoison, w.name(last))
}

// deliverAll delivers all messages together, again and again until each is acked.
func (w *world[Tx]) deliverAll() error {
	left := slices.Clone(w.Messages)
	for range tries {
		all, err := w.deliver(left...)
		if err != nil {
			return fmt.Errorf("all messages together: %w", errors.Join(err, w.handlerError()))
		}
		var again []*semel.Message
		for i, d := range all {
			if d.Kind != semel.Ack {
				again = append(again, left[i])
			}
		}
		if left = again; len(left) == 0 {
			return w.finish()
		}
	}
	return fmt.Errorf("%d messages were not acked after %d deliveries: %w", len(left), tries, w.handlerError())
}

// tries is the number of deliveries within which a message must be acked. Each of 32 steps may fail once.
const tries = 40

func conflict[Tx any](s *session[Tx]) error {
	w := s.world()
	c := w.policy()
	if c.Strategy == consumer.StrategyNatural {
		return &NotRun{"StrategyNatural keeps no content to compare with"}
	}
	if !w.hasInbox && c.OnConflict != consumer.ActionKeepFirst {
		return &NotRun{"the store has no inbox in which a message could be parked"}
	}
	found := 0
	err := eachMessage(w, func(i int) error {
		if err := w.deliverAndCheck(i, acks()...); err != nil {
			return err
		}
		other := otherContent(w.Messages[i])
		if !sameID(c, w.Messages[i], other) {
			return nil
		}
		found++
		_, err := w.deliver(other)
		return err
	})
	switch {
	case err != nil:
		return err
	case found == 0:
		return &NotRun{"the identity covers the whole body, so no other content has the same id"}
	}
	return s.same(w, saysConflict)
}

// otherContent returns a copy of m with other content: its JSON object has another field, or its body has another byte
// at the end.
func otherContent(m *semel.Message) *semel.Message {
	other := clone(m)
	body, object := bytes.CutSuffix(bytes.TrimSpace(other.Body), []byte("}"))
	if !object || !json.Valid(other.Body) {
		other.Body = append(other.Body, '.')
		return other
	}
	comma := ","
	if bytes.HasSuffix(bytes.TrimSpace(body), []byte("{")) {
		comma = ""
	}
	other.Body = []byte(string(body) + comma + `"semeltest":1}`)
	return other
}

// reordered delivers the messages in reverse order. Messages with the same key stay in order.
func reordered[Tx any](s *session[Tx]) error {
	w := s.world()
	if w.Config.Version != nil {
		return &NotRun{"Config.Version keeps the order; see future version"}
	}
	order := reversed(w.Messages)
	if order == nil {
		return &NotRun{"the messages have no different keys (semel.Message.Key)"}
	}
	for _, i := range order {
		if err := w.deliverAndCheck(i, acks()...); err != nil {
			return err
		}
	}
	return s.same(w, saysOrder)
}

// reversed returns the indexes of the messages in another order, in which messages of one key keep their order. If
// there is no other possible order, reversed returns nil.
func reversed(all []*semel.Message) []int {
	var keys []string
	for _, m := range all {
		if m.Key == nil {
			return nil
		}
		if !slices.Contains(keys, string(m.Key)) {
			keys = append(keys, string(m.Key))
		}
	}
	if len(keys) < 2 {
		return nil
	}
	var order []int
	for _, key := range slices.Backward(keys) {
		for i, m := range all {
			if string(m.Key) == key {
				order = append(order, i)
			}
		}
	}
	return order
}

// deadLetter parks each message, delivers a copy, and retries the parked message.
func deadLetter[Tx any](s *session[Tx]) error {
	w := s.world()
	if !w.hasInbox || w.policy().Retry.OnExhausted != consumer.ActionPark {
		return &NotRun{"failed messages are not kept in the store"}
	}
	if w.Config.Strategy == consumer.StrategyNatural {
		return &NotRun{"StrategyNatural writes no marker, so a copy of a failed message runs"}
	}
	for _, i := range s.baseline.acts {
		before := w.effect()
		failOnce(w, afterHandle, semel.Permanent(errInjected))
		if err := w.deliverAndCheck(i, source.EndParked); err != nil {
			return err
		}
		if err := w.deliverAndCheck(i, acks()...); err != nil {
			return err
		}
		if err := unchanged(w, before, saysRemains, w.name(i)); err != nil {
			return err
		}
		if err := w.retryParked(); err != nil {
			return err
		}
		if err := w.deliverAndCheck(i, acks()...); err != nil {
			return err
		}
	}
	return s.same(w, saysTwice, "each message failed for good and was retried from the store with the same id", w.advice())
}

// retryParked retries all parked messages and processes them. Each step of a message may park it once.
func (w *world[Tx]) retryParked() error {
	for range w.lastStep() + 1 {
		if err := errors.Join(w.requeue(store.StateParked), w.work()); err != nil {
			return err
		}
	}
	return nil
}

// requeue makes the rows in a state due.
func (w *world[Tx]) requeue(state store.RowState) error {
	rows, err := w.wrapped.(store.Inbox).Rows(w.t.Context(), store.RowFilter{Consumer: w.policy().Name, States: []store.RowState{state}})
	act := w.wrapped.(admin.Requeuer).Requeue
	if state == store.StateInProgress {
		act = w.wrapped.(admin.Requeuer).Release
	}
	for _, r := range rows {
		by := store.Act{Verb: "retry", Who: "semeltest", Why: "test of a retry"}
		err = errors.Join(append(act(w.t.Context(), by, r.Seen()), err)...)
	}
	return err
}

// oldVersion delivers each version of a stream a second time, with another id.
func oldVersion[Tx any](s *session[Tx]) error {
	w := s.world()
	c := w.policy()
	if c.Version == nil {
		return &NotRun{"Config.Version is not set"}
	}
	if err := w.deliverAll(); err != nil {
		return err
	}
	for _, m := range w.Messages {
		old := otherID(m)
		if sameID(c, m, old) {
			return &NotRun{"the id is not in the CloudEvents attribute id, so the kit cannot change it"}
		}
		if _, err := w.deliver(old); err != nil {
			return err
		}
	}
	return s.same(w, saysOld)
}

// otherID returns a copy of m with another CloudEvents id.
func otherID(m *semel.Message) *semel.Message {
	other := clone(m)
	if other.Attributes.ID != "" {
		other.Attributes.ID += "-old"
	}
	for i := range other.Headers {
		if strings.EqualFold(other.Headers[i].Name, "ce-id") {
			other.Headers[i].Value = append(other.Headers[i].Value, "-old"...)
		}
	}
	return other
}

// futureVersion delivers all versions in reverse order.
func futureVersion[Tx any](s *session[Tx]) error {
	w := s.world()
	switch {
	case w.Config.Version == nil:
		return &NotRun{"Config.Version is not set"}
	case w.Config.Version.FirstSeen:
		return &NotRun{"Config.Version.FirstSeen begins a stream with what arrives first"}
	case !w.hasInbox:
		return &NotRun{"the store has no inbox in which a version could wait"}
	}
	for i := range slices.Backward(w.Messages) {
		if err := w.deliverAndCheck(i, append(acks(), source.EndReceived)...); err != nil {
			return err
		}
	}
	if err := w.work(); err != nil {
		return err
	}
	return s.same(w, saysFuture)
}

// replayed delivers each message as part of a replay that allows no effects outside of the store.
func replayed[Tx any](s *session[Tx]) error {
	w := s.world()
	switch {
	case w.Provider == nil:
		return &NotRun{"Handler.Provider is not set"}
	case w.Config.Replay == nil || w.Config.Replay.Effects:
		return &NotRun{"Config.Replay is not set, or it allows effects"}
	}
	w.replay = &semel.Replay{ID: 1}
	w.boot()
	return eachMessage(w, func(i int) error {
		if err := w.deliverAndCheck(i, acks()...); err != nil {
			return err
		}
		if w.ledger() != "" {
			return fmt.Errorf(saysReplayed, w.name(i))
		}
		return nil
	})
}

// expired delivers messages that are so old that their markers may have been removed.
func expired[Tx any](s *session[Tx]) error {
	w := s.world()
	switch {
	case w.Config.Retention.Keep == 0:
		return &NotRun{"Config.Retention.Keep is not set"}
	case !w.hasInbox:
		return &NotRun{"the store has no inbox in which a message could be parked"}
	}
	before := w.effect()
	w.plan.set(func(p *plan) { p.expired = true })
	return eachMessage(w, func(i int) error {
		if _, err := w.deliverOne(i); err != nil {
			return err
		}
		if w.ledger() != "" {
			return fmt.Errorf(saysExpired, w.name(i))
		}
		return unchanged(w, before, saysExpired, w.name(i))
	})
}
