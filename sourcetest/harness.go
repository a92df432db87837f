package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// Broker is the broker from which the tested source reads. Each case starts a broker of its own.
type Broker interface {
	// Publish appends m to the lane with the given number, from 0 to Can.Lanes-1. When Publish returns, a source can
	// deliver the message.
	Publish(lane int, m *semel.Message) error
	// End declares that no more messages will be published. The suite calls End only if Can.Ends is true, before or
	// after Open.
	End() error
	// Open returns a source that reads all lanes. All sources that Open returns belong to the same consumer, and a new
	// source continues at the positions that the consumer has stored, if any. A case closes a source before it opens
	// the next source.
	Open() (source.Source, error)
}

// DeadLetterBroker is a Broker whose dead letters the suite can read.
type DeadLetterBroker interface {
	Broker
	// Dead returns all dead letters, in any order.
	Dead() ([]*semel.Message, error)
}

// Can declares the abilities of a source.
type Can struct {
	// Lanes is the number of lanes to which the suite may publish; at least 1. The source may have more lanes.
	Lanes int
	// Live is true if the source delivers messages that are published after Open.
	Live bool
	// Whole is true if keys and headers arrive unchanged. Every source must deliver bodies unchanged.
	Whole bool
	// Ordered is true if the messages of a lane are first delivered in the order in which they were published.
	Ordered bool
	// Reopens is true if the next source of the consumer delivers the messages that were not acked.
	Reopens bool
	// Remembers is true if the next source does not deliver an acked message again, provided that the previous source
	// was closed cleanly and all earlier messages of the lane were acked too.
	Remembers bool
	// HandsBack is true if the same source delivers a message again after a nack.
	HandsBack bool
	// Delays is true if a message that was nacked is not delivered before the delay Settlement.After has
	// passed.
	Delays bool
	// Counts is true if Delivery.Before is the number of earlier deliveries of the message. If Counts is false, Before
	// must always be source.Unknown.
	Counts bool
	// Pauses is true if Flow pauses and resumes a lane.
	Pauses bool
	// DeadLetters is true if the source stores dead letters (source.Info.DeadLetters). The broker must then
	// implement DeadLetterBroker.
	DeadLetters bool
	// Idles is true if the source can report that it has delivered everything (source.Info.Idle).
	Idles bool
	// Dated is true if the source reports the age of messages that are not acked (source.Info.Ages).
	Dated bool
	// Ends is true if Fetch returns source.ErrEnd after Broker.End, once every message is acked or dead-lettered. If
	// Ends is false, Fetch must never return source.ErrEnd.
	Ends bool
}

// minimum returns an error if c lacks an ability that every source must have.
func (c Can) minimum() error {
	switch {
	case c.Lanes < 1:
		return errors.New("sourcetest: Can.Lanes is less than 1; a source has at least one lane")
	case !c.Reopens && !c.HandsBack:
		return errors.New("sourcetest: neither Can.Reopens nor Can.HandsBack; such a source loses what was not settled")
	case c.Remembers && !c.Reopens:
		return errors.New("sourcetest: Can.Remembers without Can.Reopens; a source can remember positions only if it can be opened again")
	case c.Delays && !c.HandsBack:
		return errors.New("sourcetest: Can.Delays without Can.HandsBack; only a nacked message can be delayed")
	}
	return nil
}

// Harness describes the source to be tested.
type Harness struct {
	// Start starts an empty broker, and registers a function with t.Cleanup that stops the broker. Required.
	Start func(t testing.TB) Broker
	Can   Can
	// Virtual is true if each case should run in a testing/synctest bubble, where waiting takes no real time.
	// Set Virtual for sources that need no network.
	Virtual bool
	// Patience is the longest time that a case waits for an event that should happen; default 10 s.
	Patience time.Duration
	// Quiet is the time that a case waits in order to conclude that an event does not happen; default 1 s.
	Quiet time.Duration
}

// Case is one law with its test.
type Case struct {
	// Name is the name of the subtest.
	Name string
	// Law is the tested law, as a sentence.
	Law string
	run func(*session) error
}

// Run runs all cases as subtests of t. If the harness lacks an ability that every source must have, Run fails t at
// once.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if err := h.Can.minimum(); err != nil {
		t.Fatal(err)
	}
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			if err := c.Check(t, h); err != nil {
				t.Errorf("law: %s\nbroken: %v", c.Law, err)
			}
		})
	}
}

// Check runs the case against a new broker. If the source breaks the law, Check returns an error that describes how.
// Check fails t only if the broker itself fails.
func (c Case) Check(t *testing.T, h Harness) (err error) {
	t.Helper()
	if h.Patience == 0 {
		h.Patience = 10 * time.Second
	}
	if h.Quiet == 0 {
		h.Quiet = time.Second
	}
	if !h.Virtual {
		return c.check(t, h)
	}
	synctest.Test(t, func(t *testing.T) { err = c.check(t, h) })
	return err
}

func (c Case) check(t *testing.T, h Harness) error {
	t.Helper()
	s := &session{Harness: h, ctx: t.Context(), broker: h.Start(t), deliveryCounts: map[string]int{}}
	err := c.run(s)
	if s.source != nil {
		err = errors.Join(err, s.close())
	}
	if s.brokerErr != nil {
		t.Errorf("the broker failed: %v", s.brokerErr)
	}
	return errors.Join(err, s.violation)
}

// session is the state of a running case: its broker, the open source, and the deliveries so far.
type session struct {
	Harness
	ctx    context.Context
	broker Broker
	source source.Source
	lanes  laneLog

	published []*semel.Message
	// deliveries contains the deliveries in the order in which they arrived. deliveryCounts counts the deliveries
	// by the message's body.
	deliveries     []source.Delivery
	deliveryCounts map[string]int
	ended          bool
	// unanswered is true if the last Fetch could not reach the broker.
	unanswered bool

	// violation is the first violation of a law that holds for every Fetch, or nil.
	violation error
	// brokerErr is an error of the broker, or nil. An error of the broker is not a fault of the source.
	brokerErr error
}

func (s *session) breach(format string, values ...any) {
	if s.violation == nil {
		s.violation = fmt.Errorf(format, values...)
	}
}

// publish publishes n messages: the first in lane 0, the next in lane 1, and so on, starting again with lane 0
// after the last lane.
func (s *session) publish(n int) {
	for range n {
		s.publishBody(len(s.published)%s.Can.Lanes, "")
	}
}

func (s *session) publishBody(lane int, padding string) {
	n := len(s.published)
	m := &semel.Message{
		Origin:  semel.Origin{Written: uint32(time.Now().Unix())},
		Key:     fmt.Appendf(nil, "key-%d", lane),
		Headers: semel.Headers{{Name: "ce-id", Value: fmt.Appendf(nil, "id-%d", n)}, {Name: "note", Value: []byte("ä \"x\"")}},
		Body:    fmt.Appendf(nil, `{"n":%d,"lane":%d,"padding":"%s"}`, n, lane, padding),
	}
	if err := s.broker.Publish(lane, m); err != nil && s.brokerErr == nil {
		s.brokerErr = fmt.Errorf("publish: %w", err)
	}
	s.published = append(s.published, m)
}

func (s *session) end() {
	if err := s.broker.End(); err != nil && s.brokerErr == nil {
		s.brokerErr = fmt.Errorf("end: %w", err)
	}
}

// openSource opens a source and forgets the deliveries of earlier sources.
func (s *session) openSource() {
	source, err := s.broker.Open()
	if err != nil {
		s.brokerErr = fmt.Errorf("open: %w", err)
		source = NewMemory(1)
	}
	s.source, s.lanes = source, laneLog{}
	s.deliveries, s.deliveryCounts, s.ended = nil, map[string]int{}, false
	source.Lanes(&s.lanes)
}

func (s *session) close() error {
	ctx, cancel := context.WithTimeout(s.ctx, s.Patience)
	defer cancel()
	source := s.source
	s.source = nil
	if err := source.Close(ctx); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

func (s *session) reopen() error {
	if err := s.close(); err != nil {
		return err
	}
	s.openSource()
	return nil
}
