package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/source"
)

// What a client answers to a delivery. The source never sends +TERM: the server would delete the message of another
// process that has it by then.
const (
	bodyAck      = "+ACK"
	bodyNack     = "-NAK"
	bodyProgress = "+WPI"
)

// errNobody means that no consumer has received an answer: the consumer is deleted, or has no leader.
var errNobody = errors.New("the consumer does not answer")

// sendOn sends the same answer to several deliveries, and returns those for which the server has confirmed the answer.
func sendOn(ctx context.Context, conn *nats.Conn, body string, all []*delivery) (confirmed []*delivery, err error) {
	inbox := conn.NewInbox()
	sub, err := conn.SubscribeSync(inbox + ".*")
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	for i, d := range all {
		if err := conn.PublishMsg(&nats.Msg{Subject: d.raw.Reply(), Reply: inbox + "." + strconv.Itoa(i), Data: []byte(body)}); err != nil {
			return nil, err
		}
	}
	for range all {
		answer, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return confirmed, err
		}
		if len(answer.Data) == 0 && answer.Header.Get("Status") == "503" {
			return confirmed, errNobody
		}
		i, err := strconv.Atoi(strings.TrimPrefix(answer.Subject, inbox+"."))
		if err != nil || i < 0 || i >= len(all) {
			return confirmed, fmt.Errorf("unexpected answer on %s", answer.Subject)
		}
		confirmed = append(confirmed, all[i])
	}
	return confirmed, nil
}

// settleTimeout is how long Settle waits for the confirmations of acks.
const settleTimeout = 10 * time.Second

// Settle implements source.Source. Settle acks with a confirmation by the server, also after the hold time of a
// delivery: the ack follows the commit of the consumer. Settle returns the acks that the server has not confirmed. A
// nacked delivery stays in the memory of this process until its delay has passed, and Fetch then returns it again. Dead
// letters are not supported.
func (s *Source) Settle(ctx context.Context, all []source.Settlement) ([]int, error) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	err := s.confirmSession(ctx)
	var acks []*delivery
	var indexes, left []int
	var unsupported error
	for i, one := range all {
		d, ours := one.Delivery.Handle.(*delivery)
		if !ours || one.Delivery.Lane != d.lane || !s.ledger.owns(d) {
			continue
		}
		switch one.Kind {
		case semel.Ack:
			acks, indexes = append(acks, d), append(indexes, i)
		case semel.Nack:
			s.ledger.nack(d, one.After, time.Now())
		case semel.DeadLetter:
			left = append(left, i)
			unsupported = fmt.Errorf("nats: %w: this source has no dead letters; park the message instead", semel.ErrUnsupported)
		}
	}
	s.rouse()
	var confirmed []*delivery
	if err == nil {
		confirmed, err = s.ack(ctx, acks)
	}
	done := make(map[*delivery]bool, len(confirmed))
	for _, d := range confirmed {
		done[d] = true
	}
	for i, d := range acks {
		if !done[d] {
			left = append(left, indexes[i])
		}
	}
	slices.Sort(left)
	return left, errors.Join(err, unsupported)
}

// ack acks deliveries and returns those whose ack the server has confirmed.
func (s *Source) ack(ctx context.Context, acks []*delivery) ([]*delivery, error) {
	if len(acks) == 0 {
		return nil, nil
	}
	confirmed, err := s.send(ctx, bodyAck, acks)
	s.ledger.acked(confirmed)
	if err != nil {
		return confirmed, fmt.Errorf("nats: stream %s, consumer %s: %d of %d acks were not confirmed: %w", s.config.Stream, s.config.Consumer, len(acks)-len(confirmed), len(acks), err)
	}
	return confirmed, nil
}

// send sends an answer on the current connection. If nobody receives the answer, the next call of confirmSession looks
// whether the consumer still exists.
func (s *Source) send(ctx context.Context, body string, all []*delivery) ([]*delivery, error) {
	confirmed, err := sendOn(ctx, s.connection(), body, all)
	if errors.Is(err, errNobody) {
		s.doubt()
	}
	if len(confirmed) > 0 {
		s.noteAnswer()
	}
	return confirmed, err
}

// keepAlive extends the hold time of deliveries until the source is closed.
func (s *Source) keepAlive() {
	for timing.Wait(s.life, s.ledger.beat()) {
		s.extend()
	}
}

// extend extends the hold time of those deliveries that need it. Deliveries that cannot be extended leave the ledger
// when their time ends.
func (s *Source) extend() {
	ctx, cancel := context.WithTimeout(s.life, askTimeout)
	defer cancel()
	if err := s.confirmSession(ctx); err != nil {
		s.addFault(err)
		return
	}
	all, first := s.ledger.expiring(time.Now())
	if len(all) == 0 {
		return
	}
	ctx, cancel = context.WithDeadline(ctx, first)
	defer cancel()
	sent := time.Now()
	confirmed, _ := s.send(ctx, bodyProgress, all) // what was not confirmed is sent again, as long as it is held
	s.ledger.extended(confirmed, sent, time.Now())
}
