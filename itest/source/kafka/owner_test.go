package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The time limit for all events that a test waits for.
const patience = 3 * time.Minute

// newSource opens a source, which is closed at the end of the test.
func newSource(t testing.TB, c kafka.Config) *kafka.Source {
	t.Helper()
	s := must.Get(kafka.New(c))(t)
	// Each source gets a store of its own that stores no positions. With a shared store, the new source would seem to
	// be behind the stored position.
	s.Info().Positions("billing", struct{ source.PositionStore }{memstore.New()})
	t.Cleanup(func() { shut(t, s) })
	return s
}

func shut(t testing.TB, s *kafka.Source) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// take fetches until it has got n deliveries.
func take(t testing.TB, s *kafka.Source, n int) []source.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []source.Delivery
	for len(all) < n && ctx.Err() == nil {
		got, err := s.Fetch(ctx, source.Bound{Messages: n - len(all), Bytes: 1 << 30})
		if err != nil {
			t.Fatalf("fetch: %v", err)
		}
		all = append(all, got...)
	}
	if len(all) != n {
		t.Fatalf("%d of %d deliveries came", len(all), n)
	}
	return all
}

// fetchError fetches until Fetch returns an error, and returns the error.
func fetchError(t testing.TB, s *kafka.Source) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for ctx.Err() == nil {
		if _, err := s.Fetch(ctx, source.Bound{Messages: 100, Bytes: 1 << 30}); err != nil {
			return err
		}
	}
	t.Fatal("Fetch did not fail")
	return nil
}

// waitBlocked waits until a lane of the source is blocked, and returns the reason for the block.
func waitBlocked(t testing.TB, s *kafka.Source) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for ctx.Err() == nil {
		call, end := context.WithTimeout(ctx, time.Second)
		_, _ = s.Fetch(call, source.Bound{Messages: 100, Bytes: 1 << 30})
		end()
		if faults := s.Info().LaneFaults(); len(faults) > 0 {
			return faults[0].Reason
		}
	}
	t.Fatal("no lane stands still")
	return ""
}

func ack(t testing.TB, s *kafka.Source, all ...source.Delivery) {
	t.Helper()
	settlements := make([]source.Settlement, len(all))
	for i := range all {
		settlements[i] = source.Settlement{Delivery: &all[i], Kind: semel.Ack}
	}
	if left, err := s.Settle(t.Context(), settlements); err != nil || len(left) > 0 {
		t.Fatalf("settle: left %v: %v", left, err)
	}
}

// put writes n values, "0" and so on, to a partition.
func put(t testing.TB, c *kgo.Client, topic string, partition int32, n int) {
	t.Helper()
	var records []*kgo.Record
	for i := range n {
		records = append(records, &kgo.Record{Topic: topic, Partition: partition, Value: []byte(fmt.Sprint(i))})
	}
	must.OK(t, c.ProduceSync(t.Context(), records...).FirstErr())
}

// offset returns the group's committed offset of a partition, or -1 if the group has committed no offset.
func offset(t testing.TB, c *kgo.Client, group, topic string, partition int32) int64 {
	t.Helper()
	all, err := kadm.NewClient(c).FetchOffsets(t.Context(), group)
	if err != nil && !errors.Is(err, kerr.GroupIDNotFound) {
		t.Fatal(err)
	}
	if o, known := all.Lookup(topic, partition); known {
		return o.At
	}
	return -1
}

// awaitOffset waits until the group has committed the wanted offset.
func awaitOffset(t testing.TB, c *kgo.Client, group, topic string, partition int32, want int64) {
	t.Helper()
	if !services.Within(patience, func() bool { return offset(t, c, group, topic, partition) == want }) {
		t.Fatalf("the group's offset of %s/%d is %d, not %d", topic, partition, offset(t, c, group, topic, partition), want)
	}
}

// remove removes the only member of a group without telling the member.
func remove(t testing.TB, c *kgo.Client, group string) {
	t.Helper()
	all := members(t, c, group)
	if len(all) != 1 {
		t.Fatalf("group %s has %d members", group, len(all))
	}
	must.OK(t, takeOut(t.Context(), c, group, all[0].MemberID))
}

func members(t testing.TB, c *kgo.Client, group string) []kadm.DescribedGroupMember {
	t.Helper()
	groups := must.Get(kadm.NewClient(c).DescribeGroups(t.Context(), group))(t)
	return groups[group].Members
}

// takeOut removes a member from its group in the way in which a broker removes a member without heartbeats.
func takeOut(ctx context.Context, c *kgo.Client, group, member string) error {
	request := kmsg.NewPtrLeaveGroupRequest()
	request.Group = group
	leaving := kmsg.NewLeaveGroupRequestMember()
	leaving.MemberID = member
	request.Members = append(request.Members, leaving)
	response, err := request.RequestWith(ctx, c)
	if err != nil {
		return err
	}
	return errors.Join(kerr.ErrorForCode(response.ErrorCode), kerr.ErrorForCode(response.Members[0].ErrorCode))
}

// inherit fetches n deliveries of a group's only partition with the source heir, the new owner of the partition. If the
// former member joins the group again before the new owner joins, the former member keeps the partition; inherit then
// removes the former member once more.
func inherit(t testing.TB, c *kgo.Client, group, former string, heir *kafka.Source, n int) []source.Delivery {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var first []source.Delivery
	fetched := make(chan error, 1)
	go func() {
		var err error
		for len(first) == 0 && err == nil && ctx.Err() == nil {
			first, err = heir.Fetch(ctx, source.Bound{Messages: n, Bytes: 1 << 30})
		}
		fetched <- err
	}()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-fetched:
			if err != nil {
				t.Fatalf("fetch: %v", err)
			}
			return append(first, take(t, heir, n-len(first))...)
		case <-tick.C:
		}
		all := members(t, c, group)
		for _, m := range all {
			given, known := m.Assigned.AsConsumer()
			if m.ClientID != former || len(all) < 2 || !known || len(given.Topics) == 0 {
				continue
			}
			t.Log("the previous member has joined first")
			if err := takeOut(t.Context(), c, group, m.MemberID); err != nil && !errors.Is(err, kerr.UnknownMemberID) {
				t.Fatal(err)
			}
		}
	}
}

func TestAFormerOwnerAndTheGroupsOffset(t *testing.T) {
	t.Parallel()
	c := client(t)
	t.Run("trap_27_a_former_owners_settlement_does_not_move_the_offset_back", func(t *testing.T) {
		topic := services.Topic(t, services.Kafka(t), 1)
		settings := config(t, topic)
		put(t, c, topic, 0, 10)
		settings.ClientID = "former"
		former := newSource(t, settings)
		old := take(t, former, 10)
		remove(t, c, settings.Group)
		settings.ClientID = "heir"
		heir := newSource(t, settings)
		ack(t, heir, inherit(t, c, settings.Group, "former", heir, 10)...)
		ack(t, former, old[:3]...) // an ack for a lost lane is no error
		awaitOffset(t, c, settings.Group, topic, 0, 10)
	})
	t.Run("trap_27_the_clients_own_commit_moves_it_back", func(t *testing.T) {
		topic := services.Topic(t, services.Kafka(t), 2)
		group := group()
		put(t, c, topic, 0, 10)
		put(t, c, topic, 1, 10)
		former := newPlainMember(t, group, topic)
		poll(t, former, 20)
		heir := newPlainMember(t, group, topic)
		moved := poll(t, heir, 10)[0].Partition // the partition that moved to the new owner
		commit(t, heir, topic, moved, 10)
		commit(t, former, topic, moved, 3)
		if at := offset(t, c, group, topic, moved); at != 3 {
			t.Errorf("the client's own commit of a lane it does not own left the offset at %d: this test shows nothing any more", at)
		}
	})
	t.Run("trap_28_that_commit_had_no_error_and_a_raw_one_of_the_generation_before_has", func(t *testing.T) {
		topic := services.Topic(t, services.Kafka(t), 2)
		group := group()
		put(t, c, topic, 0, 10)
		put(t, c, topic, 1, 10)
		former := newPlainMember(t, group, topic)
		poll(t, former, 20)
		member, generation := former.GroupMetadata()
		heir := newPlainMember(t, group, topic)
		moved := poll(t, heir, 10)[0].Partition
		request := kmsg.NewPtrOffsetCommitRequest()
		request.Group, request.MemberID, request.Generation = group, member, generation
		name := kmsg.NewOffsetCommitRequestTopic()
		name.Topic, name.TopicID = topic, topicID(t, c, topic)
		partition := kmsg.NewOffsetCommitRequestTopicPartition()
		partition.Partition, partition.Offset = moved, 3
		name.Partitions = append(name.Partitions, partition)
		request.Topics = append(request.Topics, name)
		response := must.Get(request.RequestWith(t.Context(), c))(t)
		if err := kerr.ErrorForCode(response.Topics[0].Partitions[0].ErrorCode); !errors.Is(err, kerr.IllegalGeneration) {
			t.Errorf("a commit with the generation under which the lane was owned was answered %v", err)
		}
	})
}

func topicID(t testing.TB, c *kgo.Client, topic string) [16]byte {
	t.Helper()
	all := must.Get(kadm.NewClient(c).ListTopics(t.Context(), topic))(t)
	return all[topic].ID
}

// newPlainMember returns a member of the group that uses franz-go directly.
func newPlainMember(t testing.TB, group, topic string) *kgo.Client {
	t.Helper()
	return client(t, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
}

func poll(t testing.TB, c *kgo.Client, n int) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var all []*kgo.Record
	for len(all) < n {
		fetches := c.PollFetches(ctx)
		must.OK(t, fetches.Err())
		all = append(all, fetches.Records()...)
	}
	return all
}

func commit(t testing.TB, c *kgo.Client, topic string, partition int32, at int64) {
	t.Helper()
	c.CommitOffsetsSync(t.Context(), map[string]map[int32]kgo.EpochOffset{topic: {partition: {Epoch: -1, Offset: at}}},
		func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			if err == nil {
				err = kerr.ErrorForCode(response.Topics[0].Partitions[0].ErrorCode)
			}
			if err != nil {
				t.Error(err)
			}
		})
}
