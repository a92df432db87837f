package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/timing"
	"github.com/semel-go/semel/kafka/internal/hook"
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

// memberOptions are of the member; nil if it would have nothing to read.
func (s *Source) memberOptions() []kgo.Opt {
	reading, brokers := s.topics.toRead()
	if len(reading) == 0 {
		return nil
	}
	c := s.config
	options := append(s.brokers.common(),
		kgo.ConsumerGroup(c.Group), kgo.ConsumeTopics(reading...), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.CooperativeStickyBalancer()),
		kgo.SessionTimeout(c.SessionTimeout), kgo.HeartbeatInterval(min(heartbeat, c.SessionTimeout/3)), kgo.RebalanceTimeout(rebalanceTimeout),
		c.isolation(), kgo.KeepControlRecords(), kgo.FetchMaxWait(fetchWait),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.OnPartitionsAssigned(s.group.assigned), kgo.OnPartitionsRevoked(s.group.revoked), kgo.OnPartitionsLost(s.group.lostAll),
		kgo.AdjustFetchOffsetsFn(s.group.begin), kgo.WithHooks(&s.brokers.lastAnswer, sessionEnded{&s.config}, hook.NewThrottle(s.open, fetchWait/10)),
	)
	options = append(options, s.fetchOptions(brokers)...)
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

// fetchOptions are how much is fetched at once, and who decompresses it.
func (s *Source) fetchOptions(brokers int) []kgo.Opt {
	broker, partition := s.config.MaxFetch, s.config.MaxPartitionFetch
	setDefault(&broker, min(max(leastOfBroker, int(s.budget.Most())/shareOfBuffering/max(1, brokers)), mostOfBroker))
	setDefault(&partition, min(mostOfPartition, broker))
	// The client that asks was told MaxBatch, and has made a decompressor that
	// keeps to it.
	s.budget.Use(s.brokers.client().OptValue(kgo.WithDecompressor).(kgo.Decompressor))
	return []kgo.Opt{
		kgo.FetchMaxBytes(int32(broker)), kgo.FetchMaxPartitionBytes(int32(partition)),
		kgo.WithDecompressor(s.budget), kgo.WithHooks(s.budget),
	}
}

// join connects and becomes a member of the group, if that has not happened.
func (s *Source) join(ctx context.Context) error {
	if !s.member.missing() || s.topics.none() {
		return nil
	}
	if open, err := s.brokers.open(s.startBackground); !open {
		return err
	}
	ask, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err := s.ask(ask)
	if err == nil {
		s.beginnings.forgetOthers()
		err = s.beginnings.decide(ask)
	}
	if err == nil {
		err = s.positions.check(ask, s.topics.read(), s.topics.allIDs())
	}
	if err != nil {
		return err
	}
	options := s.memberOptions()
	if options == nil {
		return nil
	}
	if err := s.member.join(options); err != nil {
		return fmt.Errorf("kafka: %w", err)
	}
	return nil
}

// startBackground starts what runs until the source is closed.
func (s *Source) startBackground() {
	s.background.Go(func() { s.commits.run(s.life) })
	s.background.Go(s.watch)
	s.background.Go(s.search)
}

// ask checks that the brokers answer, the topics exist and the group may be
// used, so that what is wrong is said in words instead of waited for.
func (s *Source) ask(ctx context.Context) error {
	err := s.topics.ask(ctx)
	if errors.As(err, &connectionError{}) {
		return err // the group would not be found either, and nobody reads it twice
	}
	for deadline := time.Now().Add(newTopic); errors.Is(err, kerr.UnknownTopicOrPartition) && time.Now().Before(deadline) && ctx.Err() == nil; {
		timing.Wait(ctx, newTopic/10)
		err = s.topics.ask(ctx)
	}
	s.deadLetters.askSize(ctx)
	return errors.Join(err, s.askGroup(ctx))
}

func (s *Source) askGroup(ctx context.Context) error {
	request := kmsg.NewPtrFindCoordinatorRequest()
	request.CoordinatorKey, request.CoordinatorKeys = s.config.Group, []string{s.config.Group}
	response, err := request.RequestWith(ctx, s.brokers.client())
	if err != nil {
		return s.brokers.unreachable(err)
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
