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

// Broker is the broker that the tested source reads from. Each case starts its own.
type Broker interface {
	// Publish appends m to a lane, 0 to Can.Lanes-1. When it returns, a source can deliver the
	// message.
	Publish(lane int, m *semel.Message) error
	// End declares that no more messages will be published. The suite calls it only if
	// Can.Ends is set, before or after Open.
	End() error
	// Open returns a source that reads all lanes, for the same consumer each time, from its
	// stored positions if it has any. A case closes a source before it opens the next one.
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
	// Lanes is the number of lanes that Publish accepts; at least 1. The source may have more
	// lanes.
	Lanes int
	// Live: messages that are published after Open are delivered.
	Live bool
	// Whole: keys and headers arrive unchanged. Bodies always must.
	Whole bool
	// Ordered: the first deliveries of a lane's messages are in the order of publishing.
	Ordered bool
	// Reopens: the next source delivers the messages that were not settled.
	Reopens bool
	// Remembers: the next source does not deliver a settled message, if the previous source
	// was closed cleanly and all earlier messages were settled too.
	Remembers bool
	// HandsBack: the same source delivers a message again after a nack.
	HandsBack bool
	// Delays: a message that was nacked is not delivered before Settlement.After.
	Delays bool
	// Counts: Delivery.Before is the number of earlier deliveries. Without this ability Before
	// is always source.Unknown.
	Counts bool
	// Pauses: Flow pauses and resumes a lane.
	Pauses bool
	// DeadLetters: the source keeps dead letters (source.Info.DeadLetters), and the broker
	// implements DeadLetterBroker.
	DeadLetters bool
	// Idles: the source can report that it has delivered everything (source.Info.Idle).
	Idles bool
	// Dated: the source reports the age of unsettled messages (source.Info.Ages).
	Dated bool
	// Ends: after Broker.End, Fetch returns source.ErrEnd when everything is settled. Without
	// this ability Fetch never returns it.
	Ends bool
}

// minimum returns an error if c declares less than every source must be able to do.
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
	// Start starts an empty broker and registers its end with t.Cleanup. Required.
	Start func(t testing.TB) Broker
	Can   Can
	// Virtual runs every case in a testing/synctest bubble, where waiting takes no real time.
	// For sources that need no network.
	Virtual bool
	// Patience is the longest wait for an expected event; default 10 s.
	Patience time.Duration
	// Quiet is how long a case waits to be sure that an event does not happen; default 1 s.
	Quiet time.Duration
}

// Case is one law and its test.
type Case struct {
	// Name is the name of the subtest.
	Name string
	// Law is the law, as a sentence.
	Law string
	run func(*session) error
}

// Run runs all cases as subtests. Run fails t at once if the harness declares less than every
// source must be able to do.
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

// Check runs the case against a new broker. Check returns how the source broke the law, or nil.
// Check fails t only if the broker fails.
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
	s := &session{Harness: h, ctx: t.Context(), broker: h.Start(t), times: map[string]int{}}
	err := c.run(s)
	if s.source != nil {
		err = errors.Join(err, s.close())
	}
	if s.failed != nil {
		t.Errorf("the broker failed: %v", s.failed)
	}
	return errors.Join(err, s.broken)
}

// session is a running case: a broker, the open source, and the deliveries so far.
type session struct {
	Harness
	ctx    context.Context
	broker Broker
	source source.Source
	lanes  laneLog

	published []*semel.Message
	// seen are the deliveries in order; times counts them by body.
	seen  []source.Delivery
	times map[string]int
	ended bool
	// unanswered is set if the last Fetch could not reach its broker.
	unanswered bool

	// broken is the first violation of a law that holds for every Fetch.
	broken error
	// failed is an error of the broker. failed says nothing about the source.
	failed error
}

func (s *session) breach(format string, values ...any) {
	if s.broken == nil {
		s.broken = fmt.Errorf(format, values...)
	}
}

// publish publishes n messages, distributed over the lanes in turn.
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
	if err := s.broker.Publish(lane, m); err != nil && s.failed == nil {
		s.failed = fmt.Errorf("publish: %w", err)
	}
	s.published = append(s.published, m)
}

func (s *session) end() {
	if err := s.broker.End(); err != nil && s.failed == nil {
		s.failed = fmt.Errorf("end: %w", err)
	}
}

// open opens a source and forgets earlier deliveries.
func (s *session) open() {
	source, err := s.broker.Open()
	if err != nil {
		s.failed = fmt.Errorf("open: %w", err)
		source = NewMemory(1)
	}
	s.source, s.lanes = source, laneLog{}
	s.seen, s.times, s.ended = nil, map[string]int{}, false
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
	s.open()
	return nil
}
