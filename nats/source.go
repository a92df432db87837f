package nats

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/worker"
	"github.com/semel-go/semel/source"
)

// Source reads the messages of a durable pull consumer. Source implements [source.Source]. The method Info returns Idle,
// Horizon and Unordered.
type Source struct {
	config   Config
	observer source.LaneObserver
	ledger   ledger
	// wake contains one token if a waiting Fetch should look again.
	wake chan struct{}
	// The context life ends with Close. The group background has the goroutines that run until then.
	life       context.Context
	end        context.CancelFunc
	background worker.Group

	opening sync.Mutex // held while a connection is opened; mu may be taken while it is held

	mu      sync.Mutex // guards the fields below; of the other locks only that of the ledger is taken while it is held
	closed  bool
	conn    *nats.Conn
	session *session // nil if the lane is not assigned
	epoch   uint64
	// lost is a lane whose loss Fetch has to tell the observer.
	lost source.Lane
	// alive is true if the goroutine that extends deliveries runs; pulling, if a pull request is open.
	alive, pulling bool
	// oneByOne is true if the next message may be larger than the limit of a pull request.
	oneByOne bool
	// doubts is the number of events after which the session must be confirmed, and confirmed the number of those for
	// which that has happened.
	doubts, confirmed int
	answered, looked  time.Time
	fault             error // what the next Fetch returns
	// reported is the first sequence of the stream at the last report of lost messages.
	reported uint64
}

var _ source.Source = (*Source)(nil)

// New checks the configuration and returns an error with all its faults. New does not connect: the first call of Fetch
// connects, and returns an error if the stream cannot be read.
func New(c Config) (*Source, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	s := &Source{config: c, wake: make(chan struct{}, 1)}
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Info implements source.Source.
func (s *Source) Info() source.Info {
	return source.Info{Unordered: true, Idle: s.isIdle, Horizon: s.horizon}
}

// Lanes implements source.Source. The source has one lane, which is named after stream and consumer. The lane is lost if
// the consumer or its stream is deleted, and assigned again, with a new epoch, when both exist again.
func (s *Source) Lanes(o source.LaneObserver) { s.observer = o }

// Fetch implements source.Source. The first call connects and checks the consumer. If the stream or the consumer does
// not exist, if a setting of the consumer does not fit, or if the server rejects the credentials, the error says so and
// has semel.DecidePermanent. The caller can call Fetch again. After Close, the error wraps semel.ErrClosed.
func (s *Source) Fetch(ctx context.Context, most source.Bound) ([]source.Delivery, error) {
	for {
		err := s.begin(ctx)
		if ctx.Err() != nil {
			return nil, s.cancelled(ctx)
		}
		if err != nil {
			return nil, err
		}
		out, due := s.ledger.take(most, time.Now())
		if len(out) > 0 {
			return out, nil
		}
		if err := s.takeFault(); err != nil {
			return nil, err
		}
		s.pull(most)
		if !s.answeredWithin(silence / 2) {
			s.probe(ctx)
		}
		s.wait(ctx, due)
	}
}

// silence is the time without any answer of the server after which the server counts as unreachable.
const silence = 5 * time.Second

// cancelled returns the error of a Fetch whose context has ended: nil if the server is reachable.
func (s *Source) cancelled(ctx context.Context) error {
	if conn := s.connection(); conn != nil && conn.IsConnected() && s.answeredWithin(silence) {
		return nil
	}
	return ctx.Err()
}

// wait blocks until ctx ends, until another goroutine calls rouse, or until the time due if that is set.
func (s *Source) wait(ctx context.Context, due time.Time) {
	var at <-chan time.Time
	if !due.IsZero() {
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		at = timer.C
	}
	select {
	case <-ctx.Done():
	case <-s.wake:
	case <-at:
	}
}

func (s *Source) rouse() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Flow pauses or resumes the lane. Messages of a pull request that is already open are kept, and delivered after the
// lane is resumed.
func (s *Source) Flow(which source.Lane, on bool) {
	s.ledger.pause(which, !on)
	s.rouse()
}

// isIdle implements source.Info.Idle. Messages that other processes hold may come again, so the source is not idle
// before they are acked.
func (s *Source) isIdle(ctx context.Context) (bool, []semel.Unfinished, error) {
	current := s.currentSession()
	if current == nil {
		return false, nil, fmt.Errorf("nats: consumer %s of stream %s is not known yet", s.config.Consumer, s.config.Stream)
	}
	info, err := current.consumer.Info(ctx)
	if err != nil {
		return false, nil, s.explain(err)
	}
	paused, open, queued := s.ledger.state(time.Now())
	if paused && (info.NumPending > 0 || queued > 0) {
		return true, []semel.Unfinished{{Lane: current.lane.ID, Messages: int64(info.NumPending) + int64(queued), Reason: "its lane is paused"}}, nil
	}
	return info.NumPending == 0 && queued == 0 && info.NumAckPending <= open, nil, nil
}

// Close ends the open pull request and nacks the deliveries that this process still holds, so that other processes get
// their messages at once. Messages that are not nacked are delivered again after the hold time of the consumer.
func (s *Source) Close(ctx context.Context) error {
	s.opening.Lock()
	s.mu.Lock()
	closed, conn := s.closed, s.conn
	s.closed = true
	s.mu.Unlock()
	s.opening.Unlock()
	if closed {
		return nil
	}
	s.end()
	s.rouse()
	s.background.Wait()
	held := s.ledger.end(time.Now())
	if conn == nil {
		return nil
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	// The answer shows that the server has ended the pull request, which would get the nacked messages otherwise.
	if len(held) > 0 && conn.FlushWithContext(ctx) == nil {
		_, _ = s.send(ctx, bodyNack, held) // messages that are not nacked come again after the hold time
	}
	return nil
}

// closeTimeout is how long Close waits for the server.
const closeTimeout = 5 * time.Second

// LogValue implements slog.LogValuer. The value contains servers, stream and consumer, and no password.
func (s *Source) LogValue() slog.Value {
	return slog.GroupValue(slog.String("servers", s.config.servers()), slog.String("stream", s.config.Stream), slog.String("consumer", s.config.Consumer))
}
