package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// remove removes a reader from the group without a notification of the reader, as a broker removes a silent member.
func remove(t testing.TB, c *kgo.Client, r *reader) {
	t.Helper()
	member, _ := r.member.currentClient().GroupMetadata()
	request := kmsg.NewPtrLeaveGroupRequest()
	request.Group, request.MemberID = r.config.Group, member
	leaving := kmsg.NewLeaveGroupRequestMember()
	leaving.MemberID = member
	request.Members = append(request.Members, leaving)
	response, err := request.RequestWith(t.Context(), c)
	if err == nil {
		err = kerr.ErrorForCode(response.ErrorCode)
	}
	must(t, err)
}

// makeValues returns n values: "0", "1" and so on.
func makeValues(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func TestAFormerOwnerCannotMoveTheGroupsOffset(t *testing.T) {
	t.Run("case_11_a_commit_carries_the_member_under_which_the_lane_was_given", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, makeValues(10)...)
		former := read(t, config)
		old := former.take(10)
		remove(t, c, former)
		heir := read(t, config)
		heir.ack(heir.take(10)...)
		former.ack(old[:3]...) // an ack for a lost lane is no error
		wantOffset(t, c, 0, 10)
		former.wantTold("lost orders/0", 1)
	})
	t.Run("case_11_a_member_that_was_forgotten_and_joins_anew_has_lost_what_it_had", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, makeValues(10)...)
		former := read(t, config)
		old := former.take(10)
		remove(t, c, former)
		heir := read(t, config)
		heir.ack(heir.take(10)...)
		heir.close()
		put(t, c, "orders", 0, "10")
		former.member.currentClient().ForceRebalance() // the reader gets the same partition again, and its client continues at the old position
		former.await("another generation", func(told []string) bool { return len(told) > 1 })
		former.ack(old[:3]...)
		wantOffset(t, c, 0, 10)
		got := former.take(1)
		expectBodies(t, got, "10")
		former.ack(got...)
		former.wantNotes("given orders/0", "lost orders/0", "given orders/0")
	})
	t.Run("trap_29_a_lane_that_is_lost_without_asking_is_given_again_from_the_groups_offset", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0", "1", "2")
		r := read(t, config)
		first := r.take(3)
		r.ack(first[0])
		remove(t, c, r)
		again := r.take(2)
		expectBodies(t, again, "1", "2")
		r.wantNotes("given orders/0", "lost orders/0", "given orders/0")
		r.ack(first...) // first belongs to an old epoch
		wantOffset(t, c, 0, 1)
		r.ack(again...)
		awaitOffset(t, c, "billing", "orders", 0, 3)
	})
}

// pair creates a topic of two partitions with three values each, and a reader that has got all these values. The last
// result contains the deliveries.
func pair(t testing.TB, options ...kfake.Opt) (Config, *kgo.Client, *reader, map[string][]source.Delivery) {
	t.Helper()
	c := cluster(t, append([]kfake.Opt{kfake.SeedTopics(2, "orders")}, options...)...)
	config := Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing"}
	p := newProducer(t, c.ListenAddrs())
	put(t, p, "orders", 0, "0", "1", "2")
	put(t, p, "orders", 1, "0", "1", "2")
	first := read(t, config)
	got := map[string][]source.Delivery{}
	for _, d := range first.take(6) {
		got[d.Lane.ID] = append(got[d.Lane.ID], d)
	}
	return config, p, first, got
}

// findMoved searches the reader's notifications for a notification that begins with the parameter what, and returns the
// lane of the notification and the other lane.
func (r *reader) findMoved(what string) (moved, kept string) {
	for _, s := range r.notifications() {
		if lane, found := strings.CutPrefix(s, what+" "); found {
			if lane == "orders/0" {
				return lane, "orders/1"
			}
			return lane, "orders/0"
		}
	}
	r.t.Fatalf("%s was notified of no lane: %v", what, r.notifications())
	return "", ""
}

func TestALaneThatIsTakenAwayEndsWhatItBegan(t *testing.T) {
	t.Run("trap_26_what_is_settled_while_it_is_taken_away_is_the_heirs_beginning", func(t *testing.T) {
		config, c, first, got := pair(t)
		first.revoking = func(_ context.Context, l source.Lane) { first.ack(got[l.ID][:2]...) }
		heir := read(t, config)
		expectBodies(t, heir.take(1), "2")
		moved, kept := first.findMoved("revoking")
		if !slices.Equal(first.notifications()[2:], []string{"revoking " + moved, "lost " + moved}) {
			t.Errorf("the previous owner was notified of %v", first.notifications())
		}
		first.ack(got[moved]...) // an ack for a lane that moved returns no error and has no effect
		partition := int32(moved[len(moved)-1] - '0')
		wantOffset(t, c, partition, 2)
		t.Run("trap_T34_a_lane_that_is_kept_through_a_rebalance_keeps_its_deliveries", func(t *testing.T) {
			first.ackPatiently(got[kept]...) // the group may begin the next generation before this member knows of it
			awaitOffset(t, c, "billing", "orders", 1-partition, 3)
		})
	})
	t.Run("C9_what_is_settled_and_not_committed_is_committed_before_the_heir_begins", func(t *testing.T) {
		config, _, first, got := pair(t)
		over, cancel := context.WithCancel(context.Background())
		cancel()
		first.revoking = func(_ context.Context, l source.Lane) { // this function returns without a wait
			_, _ = first.Settle(over, settlements(semel.Ack, got[l.ID][:2]))
		}
		expectBodies(t, read(t, config).take(1), "2")
	})
	t.Run("C9_an_observer_that_does_not_return_is_waited_for_no_longer_than_the_deadline", func(t *testing.T) {
		config, _, first, _ := pair(t)
		first.config.RevokeTimeout = 50 * time.Millisecond // the client reads this option at each revocation
		first.revoking = func(ctx context.Context, _ source.Lane) { <-ctx.Done() }
		expectBodies(t, read(t, config).take(3), "0", "1", "2")
	})
	t.Run("trap_31_closing_while_a_lane_is_taken_away_ends", func(t *testing.T) {
		config, _, first, _ := pair(t)
		first.revoking = func(ctx context.Context, _ source.Lane) { <-ctx.Done() }
		heir := read(t, config)
		stop := heir.keepFetching(func([]source.Delivery) {})
		defer stop()
		first.await("a revocation", func(told []string) bool { return len(told) > 2 })
		began := time.Now()
		first.close()
		if took := time.Since(began); took > defaultRevoke/2 {
			t.Errorf("it took %v", took)
		}
	})
}

func TestACommitThatIsRefusedIsTriedAgainOrEndsTheLane(t *testing.T) {
	for name, code := range map[string]*kerr.Error{
		"trap_T34_while_the_group_rebalances":      kerr.RebalanceInProgress,
		"trap_43_when_the_coordinator_has_trouble": kerr.InvalidCommitOffsetSize,
	} {
		t.Run(name, func(t *testing.T) {
			c, config, p := startBrokers(t)
			put(t, p, "orders", 0, "0", "1")
			r := read(t, config)
			got := r.take(2)
			refuse(c, code, 1)
			left, err := r.Settle(t.Context(), settlements(semel.Ack, got))
			if !slices.Equal(left, []int{0, 1}) || err == nil || !strings.Contains(err.Error(), "orders/0") {
				t.Errorf("left %v: %v", left, err)
			}
			wantOffset(t, p, 0, -1)
			r.ack(got...)
			wantOffset(t, p, 0, 2)
		})
	}
	for name, code := range map[string]*kerr.Error{
		"case_11_an_unknown_member_has_lost_its_lanes":          kerr.UnknownMemberID,
		"case_11_a_member_with_another's_name_has_lost_its_own": kerr.FencedInstanceID,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // slow, because the client must notice the error by itself
			c := cluster(t, kfake.SeedTopics(1, "orders"))
			config := Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing"}
			put(t, newProducer(t, c.ListenAddrs()), "orders", 0, "0")
			r := read(t, config)
			refuse(c, code, 1)
			r.ack(r.take(1)...)
			r.wantNotes("given orders/0", "lost orders/0")
			r.ack(r.take(1)...) // the lane is assigned again, although the group did not revoke it
		})
	}
}

func TestACommitOfAGenerationThatIsOver(t *testing.T) {
	t.Run("case_11_a_stale_generation_is_not_tried_again_until_the_lane_is_kept_by_a_newer", func(t *testing.T) {
		c, config, p := startBrokers(t)
		put(t, p, "orders", 0, "0")
		r := read(t, config)
		got := r.take(1)
		commits := refuse(c, kerr.IllegalGeneration, 1)
		for range 3 {
			if left, _ := r.Settle(t.Context(), settlements(semel.Ack, got)); len(left) != 1 {
				t.Fatalf("left %v", left)
			}
		}
		if n := commits(); n != 1 {
			t.Errorf("%d commits were tried in one generation", n)
		}
		r.member.currentClient().ForceRebalance()
		awaitOffset(t, p, "billing", "orders", 0, 1)
		r.wantTold("lost orders/0", 0)
	})
}

func TestALastCommitWhileTheGroupIsSharedOutAnew(t *testing.T) {
	t.Run("case_10_who_leaves_while_the_group_is_shared_out_anew_commits_in_its_next_generation", func(t *testing.T) {
		c, config, p := startBrokers(t)
		put(t, p, "orders", 0, "0")
		r := read(t, config)
		got := r.take(1)
		refuse(c, kerr.IllegalGeneration, 1)
		if left, _ := r.Settle(t.Context(), settlements(semel.Ack, got)); len(left) != 1 {
			t.Fatalf("left %v", left)
		}
		r.member.currentClient().ForceRebalance()
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		awaitOffset(t, p, "billing", "orders", 0, 1)
	})
	t.Run("case_10_who_leaves_when_the_next_generation_begins_while_it_commits_commits_in_that", func(t *testing.T) {
		c, _, p := startBrokers(t)
		put(t, p, "orders", 0, "0")
		r := read(t, Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", CommitInterval: time.Minute})
		got := r.take(1)
		client := r.member.currentClient()
		now := ownerOf(client)
		r.lanes.renew(client, owner{now.member, now.generation - 1}, nil) // as if the group had not reported the current generation yet
		r.deliveries.settle(settlements(semel.Ack, got))
		c.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
			r.lanes.renew(client, now, nil)
			return nil, nil, false
		})
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
		awaitOffset(t, p, "billing", "orders", 0, 1)
	})
	t.Run("case_10_who_leaves_and_waits_in_vain_for_the_next_generation_leaves_the_group_in_time", func(t *testing.T) {
		c := cluster(t, kfake.SeedTopics(1, "orders"))
		text := &lockedBuffer{}
		config := Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", Logger: logTo(text)}
		put(t, newProducer(t, c.ListenAddrs()), "orders", 0, "0")
		r := read(t, config)
		got := r.take(1)
		refuse(c, kerr.IllegalGeneration, 1000)
		if left, _ := r.Settle(t.Context(), settlements(semel.Ack, got)); len(left) != 1 {
			t.Fatalf("left %v", left)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 6*time.Second) // one half of this time is reserved for leaving the group
		defer cancel()
		if err := r.Close(ctx); err == nil {
			t.Error("Close does not report that the group has not accepted a commit")
		}
		if strings.Contains(text.String(), "the group was not left") {
			t.Errorf("it says:\n%.2000s", text.String())
		}
	})
}

func TestAnEpochThatRisesWithAHeartbeatIsTaken(t *testing.T) {
	t.Parallel()
	t.Run("case_11_a_member_balanced_by_the_brokers_commits_with_its_newer_epoch", func(t *testing.T) {
		c := cluster(t, kfake.SeedTopics(1, "orders"))
		config := Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing", NextGen: true}
		p := newProducer(t, c.ListenAddrs())
		put(t, p, "orders", 0, "0")
		r := read(t, config)
		got := r.take(1)
		refuse(c, kerr.StaleMemberEpoch, 1)
		if left, err := r.Settle(t.Context(), settlements(semel.Ack, got)); len(left) != 1 || err == nil {
			t.Fatalf("left %v: %v", left, err)
		}
		idle := read(t, config) // a second member gets no partition, but raises the group's epoch
		stop := idle.keepFetching(nil)
		defer stop()
		awaitOffset(t, p, "billing", "orders", 0, 1)
		r.wantTold("lost orders/0", 0)
	})
}

// refuse makes the brokers refuse the next n commits, and counts all commits.
func refuse(c *kfake.Cluster, code *kerr.Error, n int) (commits func() int) {
	seen := make(chan struct{}, 1000)
	c.ControlKey(int16(kmsg.OffsetCommit), func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		seen <- struct{}{}
		if len(seen) > n {
			return nil, nil, false
		}
		commit := request.(*kmsg.OffsetCommitRequest)
		response := commit.ResponseKind().(*kmsg.OffsetCommitResponse)
		for _, t := range commit.Topics {
			topic := kmsg.NewOffsetCommitResponseTopic()
			topic.Topic, topic.TopicID = t.Topic, t.TopicID
			for _, p := range t.Partitions {
				partition := kmsg.NewOffsetCommitResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, code.Code
				topic.Partitions = append(topic.Partitions, partition)
			}
			response.Topics = append(response.Topics, topic)
		}
		return response, nil, true
	})
	return func() int { return len(seen) }
}

func TestNothingIsCommittedThatIsNotSettled(t *testing.T) {
	t.Parallel()
	t.Run("trap_32_what_was_fetched_is_not_committed_by_fetching_on_or_closing", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, makeValues(10)...)
		r := read(t, config)
		r.take(10)
		r.expectNone(1500 * time.Millisecond)
		r.close()
		wantOffset(t, c, 0, -1)
	})
	t.Run("trap_4_the_clients_own_commits_are_off", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, "0")
		r := read(t, config)
		r.take(1)
		if off, ok := r.member.currentClient().OptValue(kgo.DisableAutoCommit).(bool); !ok || !off {
			t.Error("the client commits by itself")
		}
	})
}
