package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
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
	options := append(slices.Clone(c.Options),
		kgo.SeedBrokers(c.Brokers...), kgo.ClientID(c.ClientID), kgo.WithLogger(logger{c.Logger, &s.said}),
		kgo.MetadataMaxAge(metadataAge), kgo.MetadataMinAge(metadataWait), kgo.SASL(c.SASL...), kgo.DisableClientMetrics())
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
	return append(s.common(), kgo.WithHooks(&s.dialed, &s.unanswered, &s.heard), kgo.MaxDecompressBatchBytes(s.config.MaxBatch))
}

func (s *Source) memberOptions() []kgo.Opt {
	c := s.config
	isolation := kgo.ReadCommitted()
	if c.ReadUncommitted {
		isolation = kgo.ReadUncommitted()
	}
	options := append(s.common(),
		kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(s.reading...), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(c.SessionTimeout), kgo.HeartbeatInterval(min(heartbeat, c.SessionTimeout/3)), kgo.RebalanceTimeout(rebalanceTimeout),
		kgo.FetchIsolationLevel(isolation), kgo.KeepControlRecords(), kgo.FetchMaxWait(fetchWait),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.OnPartitionsAssigned(s.assigned), kgo.OnPartitionsRevoked(s.revoked), kgo.OnPartitionsLost(s.lostAll),
		kgo.AdjustFetchOffsetsFn(s.begin), kgo.WithHooks(&s.heard, sessionEnded{s}, newPace(s.open)),
	)
	options = append(options, s.roomOptions()...)
	if c.Rack != "" {
		options = append(options, kgo.Rack(c.Rack))
	}
	if c.NextGen {
		options = append(options, kgo.ServerSideBalancer())
	}
	if c.Instance != "" {
		options = append(options, kgo.InstanceID(c.Instance))
	}
	return options
}

// The fetches that are asked for unless Config says otherwise.
const (
	leastOfBroker    = 1 << 20
	mostOfBroker     = 16 << 20
	mostOfPartition  = 1 << 20
	shareOfBuffering = 4
)

// roomOptions are how much is fetched at once, and who decompresses it.
func (s *Source) roomOptions() []kgo.Opt {
	broker, partition := s.config.MaxFetch, s.config.MaxPartitionFetch
	setDefault(&broker, min(max(leastOfBroker, int(s.room.most.Load())/shareOfBuffering/max(1, s.brokers)), mostOfBroker))
	setDefault(&partition, min(mostOfPartition, broker))
	// The client that asks was told MaxBatch, and has made a decompressor that
	// keeps to it.
	s.room.decompressor = s.side.OptValue(kgo.WithDecompressor).(kgo.Decompressor)
	return []kgo.Opt{
		kgo.FetchMaxBytes(int32(broker)), kgo.FetchMaxPartitionBytes(int32(partition)),
		kgo.WithDecompressor(s.room), kgo.WithHooks(s.room),
	}
}

// join connects and becomes a member of the group, if that has not happened.
func (s *Source) join(ctx context.Context) error {
	s.mu.Lock()
	joined, first := s.member != nil || s.closed || s.replacing || s.wanted.none, s.side == nil
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
	err := s.ask(ask)
	if err == nil {
		err = s.decide(ask)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if len(s.reading) == 0 {
		s.wanted.none, s.wanted.answers = true, true
		return nil
	}
	member, err := kgo.NewClient(s.memberOptions()...) // its callbacks wait for mu
	if err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	s.member, s.unplaced = member, true
	s.room.client.Store(member)
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
	if errors.As(err, &connectionError{}) {
		return err // the group would not be found either, and nobody reads it twice
	}
	for deadline := time.Now().Add(newTopic); errors.Is(err, kerr.UnknownTopicOrPartition) && time.Now().Before(deadline) && ctx.Err() == nil; {
		pause(ctx, newTopic/10)
		err = s.askTopics(ctx)
	}
	s.askLetterSize(ctx)
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
	topics := s.topics()
	if s.wanted.pattern != nil {
		if err := s.askPattern(ctx); err != nil || len(topics) == 0 {
			return err
		}
	}
	request := kmsg.NewPtrMetadataRequest()
	for _, topic := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = kmsg.StringPtr(topic)
		request.Topics = append(request.Topics, t)
	}
	response, err := request.RequestWith(ctx, s.side)
	if err != nil {
		return s.unreachable(err)
	}
	return s.noteTopics(len(response.Brokers), response.Topics)
}

// noteTopics notes the topics' ids, under which offsets are committed: a topic
// that is created anew has another one.
func (s *Source) noteTopics(brokers int, topics []kmsg.MetadataResponseTopic) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.brokers = brokers
	var errs error
	for _, t := range topics {
		if t.Topic == nil {
			continue
		}
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			errs = errors.Join(errs, s.explainTopic(err, *t.Topic))
			continue // without an id, which would look like another topic's
		}
		s.topicIDs[*t.Topic] = t.TopicID
	}
	return errs
}

// explainTopic is explain for a topic that may be the one for dead letters,
// which is written to.
func (s *Source) explainTopic(err error, topic string) error {
	if topic == s.config.DeadLetters && errors.Is(err, kerr.TopicAuthorizationFailed) {
		return fmt.Errorf("kafka: this user may not write dead letters to topic %s; allow it WRITE and DESCRIBE: %w", topic, err)
	}
	return explain(err, topic, s.config.Group)
}

// topics are asked for by name: those of Config.Topics, which must all exist,
// and the one for dead letters.
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
	var answer *kerr.Error
	if errors.As(errors.Join(err, s.dialed.last()), &answer) {
		return explain(answer, "", s.config.Group)
	}
	return fmt.Errorf("kafka: none of the brokers %v can be reached; see that they run, that the addresses are right, and that TLS and SASL are set as their listener wants them: %w", s.config.Brokers, connectionError{s.dialed.last(), err})
}

// connectionError is why no broker could be asked. Its text is the one cause;
// errors.Is finds all that is known.
type connectionError struct{ dialed, asked error }

func (e connectionError) Error() string {
	var cause *net.OpError
	if errors.As(errors.Join(e.dialed, e.asked), &cause) {
		return cause.Error()
	}
	return cmp.Or(e.dialed, e.asked).Error()
}

func (e connectionError) Unwrap() []error { return []error{e.dialed, e.asked} }

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
