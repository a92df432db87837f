package nats

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
)

// session is one epoch of the lane: the consumer of the stream, as it was when the lane was assigned. A consumer or a
// stream that is deleted and created again is another session, because the answers to its deliveries look alike: an ack
// of an old delivery would ack the new message with the same sequence.
type session struct {
	lane     source.Lane
	consumer jetstream.Consumer
	stream   *jetstream.StreamInfo
	info     *jetstream.ConsumerInfo
}

const (
	// askTimeout is how long the source waits for the answer of the server to a question.
	askTimeout = 5 * time.Second
	// lookEvery is the interval at which the source looks whether the consumer and the stream are still the same.
	lookEvery = 10 * time.Second
	// pullFor is the longest time for which a pull request is open.
	pullFor = 5 * time.Second
)

// same reports whether two sessions have the same consumer of the same stream.
func (v *session) same(other *session) bool {
	return v.stream.Created.Equal(other.stream.Created) && v.info.Created.Equal(other.info.Created)
}

// hold returns how long the server waits for an ack. The delays of a backoff replace the ack wait.
func (v *session) hold() time.Duration {
	hold := v.info.Config.AckWait
	for _, wait := range v.info.Config.BackOff {
		hold = min(hold, wait)
	}
	return hold
}

// begin connects and assigns the lane, unless the lane is assigned.
func (s *Source) begin(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	js, err := s.connect()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := s.confirmSession(ctx); err != nil {
		return err
	}
	s.tellLost()
	if s.currentSession() != nil {
		return nil
	}
	next, err := s.look(ctx, js)
	if err != nil {
		return err
	}
	if err := checkConsumer(next.info); err != nil {
		return semel.Permanent(err)
	}
	s.assign(next)
	return nil
}

// connect returns the open connection, or opens a connection.
func (s *Source) connect() (jetstream.JetStream, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	conn, closed, current := s.conn, s.closed, s.session
	s.mu.Unlock()
	switch {
	case closed:
		return nil, fmt.Errorf("nats: the source is closed: %w", semel.ErrClosed)
	case conn == nil || conn.IsClosed():
		s.lose(current) // the lane of an earlier connection
		opened, err := nats.Connect(strings.Join(s.config.Servers, ","), s.config.options(s)...)
		if err != nil {
			return nil, s.explain(err)
		}
		s.mu.Lock()
		s.conn, conn = opened, opened
		s.mu.Unlock()
	case !conn.IsConnected():
		return nil, fmt.Errorf("nats: not connected to %s; the client connects again when a server answers", s.config.servers())
	}
	return s.jetStream(conn)
}

func (s *Source) jetStream(conn *nats.Conn) (jetstream.JetStream, error) {
	if s.config.Domain != "" {
		return jetstream.NewWithDomain(conn, s.config.Domain)
	}
	return jetstream.New(conn)
}

// look asks the server for the stream and the consumer.
func (s *Source) look(ctx context.Context, js jetstream.JetStream) (*session, error) {
	stream, err := js.Stream(ctx, s.config.Stream)
	if err != nil {
		return nil, s.explain(err)
	}
	consumer, err := js.Consumer(ctx, s.config.Stream, s.config.Consumer)
	if err != nil {
		return nil, s.explain(err)
	}
	v := &session{consumer: consumer, stream: stream.CachedInfo(), info: consumer.CachedInfo()}
	s.reportLost(v)
	s.mu.Lock()
	s.looked, s.answered = time.Now(), time.Now()
	s.mu.Unlock()
	return v, nil
}

// assign assigns the lane, in a new epoch.
func (s *Source) assign(v *session) {
	s.mu.Lock()
	s.epoch++
	v.lane = source.Lane{ID: s.config.Stream + "/" + s.config.Consumer, Epoch: s.epoch}
	s.ledger.begin(v.lane, v.hold())
	s.session = v
	start := !s.alive && !s.closed
	s.alive = s.alive || start
	if start {
		s.background.Go(s.keepAlive)
	}
	s.mu.Unlock()
	if s.observer != nil {
		s.observer.Given(v.lane)
	}
}

// lose ends a session, unless it has ended already. From now on nothing is sent for its deliveries.
func (s *Source) lose(v *session) {
	s.mu.Lock()
	if s.session == v && v != nil {
		s.lost, s.session = v.lane, nil
		s.ledger.end(time.Now())
	}
	s.mu.Unlock()
	s.rouse()
}

// tellLost tells the observer of a lost lane. Only Fetch calls tellLost, so that no delivery of the lane follows.
func (s *Source) tellLost() {
	s.mu.Lock()
	lost := s.lost
	s.lost = source.Lane{}
	s.mu.Unlock()
	if lost != (source.Lane{}) && s.observer != nil {
		s.observer.Lost(lost)
	}
}

// confirmSession looks whether the session's consumer and stream still exist, if there is a doubt: after a reconnect,
// after an answer that nobody has received, and every lookEvery. If they do not, the lane is lost, and confirmSession
// returns nil.
func (s *Source) confirmSession(ctx context.Context) error {
	s.mu.Lock()
	doubts, current, conn := s.doubts, s.session, s.conn
	sure, recent := doubts == s.confirmed, time.Since(s.looked) < lookEvery
	s.mu.Unlock()
	if current == nil || conn == nil || sure && recent {
		return nil
	}
	js, err := s.jetStream(conn)
	if err != nil {
		return err
	}
	now, err := s.look(ctx, js)
	switch {
	case err != nil && !isGone(err) && sure: // acks and extensions go on
		s.mu.Lock()
		s.looked = time.Now()
		s.mu.Unlock()
		s.addFault(err)
	case err != nil && !isGone(err):
		return err
	case err != nil || !now.same(current):
		s.config.Logger.Warn("nats: the consumer or its stream was deleted; its deliveries are no longer settled", "stream", s.config.Stream, "consumer", s.config.Consumer)
		s.lose(current)
	default:
		s.ledger.setHold(now.hold())
		if err := checkConsumer(now.info); err != nil { // acks go on: they do no harm
			s.addFault(semel.Permanent(err))
		}
	}
	s.mu.Lock()
	s.confirmed = doubts
	s.mu.Unlock()
	return nil
}

// doubt makes the next call of confirmSession look.
func (s *Source) doubt() {
	s.mu.Lock()
	s.doubts++
	s.mu.Unlock()
	s.rouse()
}

func (s *Source) currentSession() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

func (s *Source) connection() *nats.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn
}

func (s *Source) noteAnswer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answered = time.Now()
}

func (s *Source) answeredWithin(d time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Since(s.answered) < d
}

func (s *Source) addFault(err error) {
	if err != nil && s.life.Err() == nil {
		s.mu.Lock()
		s.fault = err
		s.mu.Unlock()
	}
	s.rouse()
}

func (s *Source) takeFault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.fault
	s.fault = nil
	return err
}
