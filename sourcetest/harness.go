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

// Broker is what a source under test reads from. A case has one for itself.
type Broker interface {
	// Publish appends m to a lane, 0 to Can.Lanes-1. When it returns, the
	// message is there to be delivered.
	Publish(lane int, m *semel.Message) error
	// End says that nothing will be published any more. It is called only if
	// Can.Ends, before Open or after it.
	End() error
	// Open returns a source that reads all lanes for the same consumer each
	// time, with its positions set if it has any. A case closes one source
	// before it opens the next.
	Open() (source.Source, error)
}

// DeadLetterBroker is a Broker whose source keeps dead letters.
type DeadLetterBroker interface {
	Broker
	// Dead returns all dead letters, in any order.
	Dead() ([]*semel.Message, error)
}

// Can says what a source is able to do.
type Can struct {
	// Lanes is how many lanes can be published to; at least 1. A source may
	// have more lanes than the broker was published to.
	Lanes int
	// Live: what is published after Open is delivered as well.
	Live bool
	// Whole: keys and headers arrive as they were published. Bodies always must.
	Whole bool
	// Ordered: messages of a lane are first delivered in their order.
	Ordered bool
	// Reopens: what was not settled comes again from the next source.
	Reopens bool
	// Remembers: what was settled does not, if the source before was closed
	// cleanly and everything before it was settled, too.
	Remembers bool
	// HandsBack: what is handed back comes again from the same source.
	HandsBack bool
	// Delays: not before Settlement.After.
	Delays bool
	// Counts: Delivery.Before says how often the message was delivered before.
	// Without it Before is always source.Unknown.
	Counts bool
	// Pauses: Flow stops and resumes a lane.
	Pauses bool
	// DeadLetters: the source keeps dead letters (source.Info.DeadLetters); the
	// broker is a DeadLetterBroker.
	DeadLetters bool
	// Idles: the source knows what is there (source.Info.Idle).
	Idles bool
	// Dated: the source knows how old what is not settled is (source.Info.Ages).
	Dated bool
	// Ends: after Broker.End, Fetch returns source.ErrEnd when everything is
	// settled. Without it Fetch never does.
	Ends bool
}

// minimum reports why this is less than a source must be able to do.
func (c Can) minimum() error {
	switch {
	case c.Lanes < 1:
		return errors.New("sourcetest: Can.Lanes is less than 1; a source has at least one lane")
	case !c.Reopens && !c.HandsBack:
		return errors.New("sourcetest: neither Can.Reopens nor Can.HandsBack; such a source loses what was not settled")
	case c.Remembers && !c.Reopens:
		return errors.New("sourcetest: Can.Remembers without Can.Reopens; what is remembered without it?")
	case c.Delays && !c.HandsBack:
		return errors.New("sourcetest: Can.Delays without Can.HandsBack; what is delayed without it?")
	}
	return nil
}

// Harness is a source to be tested.
type Harness struct {
	// Start makes an empty broker, which t's cleanup takes down. Required.
	Start func(t testing.TB) Broker
	Can   Can
	// Virtual runs every case in a testing/synctest bubble, in which waiting
	// takes no time. For sources that need no network.
	Virtual bool
	// Patience is how long something that must happen may take; default 10 s.
	Patience time.Duration
	// Quiet is how long nothing must happen to believe that it never will;
	// default 1 s.
	Quiet time.Duration
}

// Case is one law and its test.
type Case struct {
	// Name names the case as a subtest.
	Name string
	// Law is what must hold, in a sentence.
	Law string
	run func(*session) error
}

// Run runs all cases as subtests. It fails t at once if the harness declares
// less than a source must be able to do.
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

// Check runs the case against a new broker and returns how the law was broken;
// nil if it holds. It fails t only if the broker fails.
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

// session is a case under way: a broker, the source that is open, and what has
// been seen.
type session struct {
	Harness
	ctx    context.Context
	broker Broker
	source source.Source
	lanes  laneLog

	published []*semel.Message
	// seen are the deliveries in their order; times counts them by body.
	seen  []source.Delivery
	times map[string]int
	ended bool
	// unanswered: the last Fetch said that its broker could not be asked.
	unanswered bool

	// broken is the first breach of a law that holds everywhere.
	broken error
	// failed is the broker's failure, which proves nothing about the source.
	failed error
}

func (s *session) breach(format string, values ...any) {
	if s.broken == nil {
		s.broken = fmt.Errorf(format, values...)
	}
}

// publish publishes n messages, lane by lane in turn.
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

// open opens a source; what was seen before is forgotten.
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
