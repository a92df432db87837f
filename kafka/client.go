package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// askTimeout is how long the brokers may take to answer before joining.
	askTimeout = 10 * time.Second
	// newTopic is how long a topic that was made just now may be unknown to
	// some brokers.
	newTopic = time.Second
	// metadataAge is how old what is known of topics may get: after so long a
	// new partition is read and a deleted topic noticed.
	metadataAge = 10 * time.Second
	// metadataWait is how soon the client asks again, for instance for the
	// leader of a partition that has none, or for a topic that could not be
	// written to; after five answers that it does not exist the write fails.
	metadataWait = 500 * time.Millisecond
	// heartbeat is how often a member says that it is alive.
	heartbeat = 3 * time.Second
	// fetchWait is how long a broker holds a fetch that finds nothing. A lane
	// that is resumed waits for the fetch under way.
	fetchWait = 500 * time.Millisecond
)

// dialer connects to a broker.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// common are the options of every connection.
func (s *Source) common() []kgo.Opt {
	c := s.config
	options := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...), kgo.ClientID(c.ClientID), kgo.WithLogger(logger{c.Logger}),
		kgo.MetadataMaxAge(metadataAge), kgo.MetadataMinAge(metadataWait), kgo.SASL(c.SASL...), kgo.DisableClientMetrics(),
	}
	if s.dial != nil {
		options = append(options, kgo.Dialer(s.dial))
	}
	if c.TLS != nil {
		options = append(options, kgo.DialTLSConfig(c.TLS.Clone()))
	}
	return options
}

// sideOptions are of the client that asks and commits.
func (s *Source) sideOptions() []kgo.Opt {
	return append(s.common(), kgo.WithHooks(&s.dialed, &s.unanswered))
}

func (s *Source) memberOptions() []kgo.Opt {
	c := s.config
	isolation := kgo.ReadCommitted()
	if c.ReadUncommitted {
		isolation = kgo.ReadUncommitted()
	}
	options := append(s.common(),
		kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(c.Topics...), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(c.SessionTimeout), kgo.HeartbeatInterval(min(heartbeat, c.SessionTimeout/3)), kgo.RebalanceTimeout(rebalanceTimeout),
		kgo.FetchIsolationLevel(isolation), kgo.KeepControlRecords(), kgo.FetchMaxWait(fetchWait),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.OnPartitionsAssigned(s.assigned), kgo.OnPartitionsRevoked(s.revoked), kgo.OnPartitionsLost(s.lostAll),
		kgo.OnOffsetsFetched(s.fetched), kgo.AdjustFetchOffsetsFn(s.begin),
	)
	if c.NextGen {
		options = append(options, kgo.ServerSideBalancer())
	}
	if c.Instance != "" {
		options = append(options, kgo.InstanceID(c.Instance))
	}
	return options
}

// join connects and becomes a member of the group, if that has not happened.
func (s *Source) join(ctx context.Context) error {
	s.mu.Lock()
	joined, first := s.member != nil || s.closed || s.replacing, s.side == nil
	s.mu.Unlock()
	if joined {
		return nil
	}
	if first {
		side, err := kgo.NewClient(s.sideOptions()...)
		if err != nil {
			return fmt.Errorf("kafka: %w", err)
		}
		s.setSide(side)
	}
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := s.ask(ask); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	member, err := kgo.NewClient(s.memberOptions()...) // its callbacks wait for mu
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	s.member = member
	return nil
}

func (s *Source) setSide(side *kgo.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		side.Close()
		return
	}
	s.side = side
	s.group.Go(s.commitLoop)
	s.group.Go(s.watch)
}

// ask checks that the brokers answer, the topics exist and the group may be
// used, so that what is wrong is said in words instead of waited for.
func (s *Source) ask(ctx context.Context) error {
	err := s.askTopics(ctx)
	for deadline := time.Now().Add(newTopic); errors.Is(err, kerr.UnknownTopicOrPartition) && time.Now().Before(deadline) && ctx.Err() == nil; {
		pause(ctx, newTopic/10)
		err = s.askTopics(ctx)
	}
	return errors.Join(err, s.askGroup(ctx))
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (s *Source) askTopics(ctx context.Context) error {
	request := kmsg.NewPtrMetadataRequest()
	for _, topic := range s.topics() {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(topic)
		request.Topics = append(request.Topics, t)
	}
	response, err := request.RequestWith(ctx, s.side)
	if err != nil {
		return s.unreachable(err)
	}
	return s.noteTopics(response.Topics)
}

// noteTopics notes the topics' ids, under which offsets are committed: a topic
// that is created anew has another one.
func (s *Source) noteTopics(topics []kmsg.MetadataResponseTopic) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs error
	for _, t := range topics {
		if t.Topic == nil {
			continue
		}
		s.topicIDs[*t.Topic] = t.TopicID
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			errs = errors.Join(errs, explain(err, *t.Topic, s.config.Group))
		}
	}
	return errs
}

func (s *Source) topics() []string {
	if s.config.DeadLetters == "" {
		return s.config.Topics
	}
	return append(append([]string{}, s.config.Topics...), s.config.DeadLetters)
}

func (s *Source) askGroup(ctx context.Context) error {
	request := kmsg.NewPtrFindCoordinatorRequest()
	request.CoordinatorKey, request.CoordinatorKeys = s.config.Group, []string{s.config.Group}
	response, err := request.RequestWith(ctx, s.side)
	if err != nil {
		return s.unreachable(err)
	}
	code := response.ErrorCode
	for _, c := range response.Coordinators {
		code = c.ErrorCode
	}
	if err := kerr.ErrorForCode(code); err != nil && !kerr.IsRetriable(err) {
		return explain(err, "", s.config.Group)
	}
	return nil
}

func (s *Source) unreachable(err error) error {
	if last := s.dialed.last(); last != nil {
		err = errors.Join(err, last)
	}
	var answer *kerr.Error
	if errors.As(err, &answer) {
		return explain(err, "", s.config.Group)
	}
	return fmt.Errorf("kafka: none of the brokers %v can be reached; see that they run, that the addresses are right, and that TLS and SASL are set as their listener wants them: %w", s.config.Brokers, err)
}

// dialed remembers why the last connection failed.
type dialed struct {
	mu  sync.Mutex // guards err
	err error
}

func (d *dialed) OnBrokerConnect(_ kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *dialed) last() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// logger passes the client's warnings on. What it logs as errors the source
// returns from Fetch, where they are handled, so they are warnings here.
type logger struct{ to *slog.Logger }

func (l logger) Level() kgo.LogLevel { return kgo.LogLevelWarn }

func (l logger) Log(_ kgo.LogLevel, text string, values ...any) {
	l.to.Warn("kafka client: "+text, values...)
}
