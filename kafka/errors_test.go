package kafka

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestRecordsThatWereDeletedBeforeTheyWereReadAreALoudLoss(t *testing.T) {
	t.Run("I0_an_offset_out_of_range_is_an_error_and_never_a_jump", func(t *testing.T) {
		c := cluster(t, kfake.SeedTopics(2, "orders"))
		config := Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing"}
		p := newProducer(t, c.ListenAddrs())
		put(t, p, "orders", 0, makeValues(10)...)
		r := read(t, config)
		r.ack(r.take(10)[:3]...)
		r.close()
		truncate := kadm.Offsets{}
		truncate.AddOffset("orders", 0, 7, -1)
		if deleted, err := kadm.NewClient(p).DeleteRecords(t.Context(), truncate); err != nil || deleted.Error() != nil {
			t.Fatal(err, deleted.Error())
		}
		r = read(t, config)
		err := r.fetchFault()
		expectContains(t, err, "topic orders, partition 0", "offset 3 of group billing", "now begins at 7", "--reset-offsets", "records were deleted before they were read")
		put(t, p, "orders", 1, "other")
		expectBodies(t, r.take(1), "other") // partition 1 continues
		if again := r.fetchFault(); again != err {
			t.Errorf("later the error is: %s", again)
		}
		wantOffset(t, p, 0, 3)
	})
}

func TestATopicThatIsDeletedAndCreatedAnewIsAnother(t *testing.T) {
	t.Run("trap_45_its_lane_is_lost_and_it_is_read_from_its_beginning", func(t *testing.T) {
		config, p := setUp(t)
		put(t, p, "orders", 0, makeValues(3)...)
		r := read(t, config)
		old := r.take(3)
		r.ack(old[:2]...)
		admin := kadm.NewClient(p)
		if _, err := admin.DeleteTopic(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, "orders"); err != nil {
			t.Fatal(err)
		}
		left, err := r.Settle(t.Context(), settlements(semel.Ack, old))
		if err != nil || len(left) > 0 {
			t.Errorf("settling in a lost lane left %v: %v", left, err)
		}
		if err := r.fetchError(); !strings.Contains(err.Error(), "topic orders") || !strings.Contains(err.Error(), "deleted") {
			t.Errorf("it says: %v", err)
		}
		put(t, newProducer(t, config.Brokers), "orders", 0, "new")
		got := r.take(1)
		expectBodies(t, got, "new")
		if got[0].Message.Origin.Offset != 0 || got[0].Message.Origin.BrokerID == old[0].Message.Origin.BrokerID {
			t.Errorf("the origin is %+v, and was %+v", got[0].Message.Origin, old[0].Message.Origin)
		}
		r.ack(got...)
		r.wantTold("lost orders/0", 1)
	})
}

func TestErrorsOfBrokersSayWhatToDo(t *testing.T) {
	for code, want := range map[*kerr.Error]string{
		kerr.SaslAuthenticationFailed:  "refused the user",
		kerr.UnsupportedSaslMechanism:  "mechanism",
		kerr.TopicAuthorizationFailed:  "READ and DESCRIBE",
		kerr.GroupAuthorizationFailed:  "may not use group billing",
		kerr.UnreleasedInstanceID:      "give each process its own",
		kerr.FencedInstanceID:          "give each process its own",
		kerr.InconsistentGroupProtocol: "a group of its own",
		kerr.InvalidSessionTimeout:     "group.min.session.timeout.ms",
		kerr.GroupMaxSizeReached:       "as many members",
		kerr.CorruptMessage:            "group billing",
	} {
		if err := explain(code, "orders", "billing"); !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), code.Message) {
			t.Errorf("%s: %v", code.Message, err)
		}
	}
}

func TestAGroupThatMayNotBeUsedIsAnErrorOfFetch(t *testing.T) {
	c := cluster(t, kfake.SeedTopics(1, "orders"))
	c.ControlKey(int16(kmsg.FindCoordinator), func(request kmsg.Request) (kmsg.Response, error, bool) {
		asked := request.(*kmsg.FindCoordinatorRequest)
		response := asked.ResponseKind().(*kmsg.FindCoordinatorResponse)
		response.ErrorCode = kerr.GroupAuthorizationFailed.Code
		for _, key := range asked.CoordinatorKeys {
			one := kmsg.NewFindCoordinatorResponseCoordinator()
			one.Key, one.ErrorCode = key, kerr.GroupAuthorizationFailed.Code
			response.Coordinators = append(response.Coordinators, one)
		}
		return response, nil, true
	})
	put(t, newProducer(t, c.ListenAddrs()), "orders", 0, "0")
	r := read(t, Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing"})
	if err := r.fetchError(); !strings.Contains(err.Error(), "may not use group billing; allow it READ on the group") {
		t.Errorf("it says: %v", err)
	}
	expectBodies(t, r.take(1), "0") // the user has got the privilege before this read
}

func TestALaneWhoseWindowIsFullWaits(t *testing.T) {
	t.Run("trap_33_what_stands_behind_an_unsettled_message_is_bounded", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, make([]string, mostWindow+5000)...)
		r := read(t, config)
		first := r.take(1)
		delivered := 1
		for {
			ctx, cancel := contextFor(t, 500*time.Millisecond)
			got, err := r.Fetch(ctx, source.Bound{Messages: 2000, Bytes: 1 << 30})
			cancel()
			must(t, err)
			if len(got) == 0 {
				break
			}
			delivered += len(got)
			r.ack(got...)
		}
		if delivered < mostWindow || delivered > mostWindow+3000 {
			t.Errorf("%d deliveries came while the first was unsettled", delivered)
		}
		r.ack(first...)
		rest := r.take(mostWindow + 5000 - delivered)
		r.ack(rest...)
		awaitOffset(t, c, "billing", "orders", 0, mostWindow+5000)
	})
}

func TestWhatIsHandedBackIsBoundedToo(t *testing.T) {
	t.Run("trap_T41_polling_waits_while_too_much_is_handed_back", func(t *testing.T) {
		config, c := setUp(t)
		put(t, c, "orders", 0, make([]string, mostBack+2000)...)
		r := read(t, config)
		var all []source.Delivery
		for len(all) < mostBack+2000 {
			got := r.take(2000)
			all = append(all, got...)
			later := settlements(semel.Nack, got)
			for i := range later {
				later[i].After = time.Hour
			}
			if left, err := r.Settle(t.Context(), later); err != nil || len(left) > 0 {
				t.Fatal(left, err)
			}
			if len(all) >= mostBack {
				break
			}
		}
		r.expectNone(300 * time.Millisecond)
		r.ack(all[:1]...) // a nacked message may still be acked
		wantOffset(t, c, 0, 1)
	})
}

func TestAPausedLaneKeepsWhatWasPolled(t *testing.T) {
	config, c := setUp(t)
	put(t, c, "orders", 0, makeValues(100)...)
	r := read(t, config)
	got := r.take(1)
	lane := got[0].Lane
	ctx, cancel := contextFor(t, patience)
	defer cancel()
	some, err := r.Fetch(ctx, source.Bound{Messages: 50, Bytes: 1}) // this call polls fifty records and returns one
	if err != nil || len(some) != 1 {
		t.Fatal(some, err)
	}
	r.Flow(lane, false)
	r.expectNone(300 * time.Millisecond)
	r.Flow(lane, true)
	got = append(append(got, some...), r.take(98)...)
	if !slices.Equal(bodies(got), makeValues(100)) {
		t.Errorf("came %s", formatBodies(got))
	}
}

func TestALogThatGoesBackIsReadAgainFromTheGroupsOffset(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]kgo.FetchTopic{
		"trap_44_records_that_were_delivered_have_others_in_their_place": {Topic: "orders", Partitions: []kgo.FetchPartition{
			{Records: []*kgo.Record{{Topic: "orders", Offset: 2, Value: []byte("another 2")}}},
		}},
		"trap_45_records_come_from_a_topic_with_another_id": {Topic: "orders", TopicID: [16]byte{9}, Partitions: []kgo.FetchPartition{
			{Records: []*kgo.Record{{Topic: "orders", Offset: 4, Value: []byte("of another")}}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			config, c := setUp(t)
			put(t, c, "orders", 0, "0", "1", "2", "3")
			r := read(t, config)
			got := r.take(4)
			r.ack(got[:2]...)
			r.intake.accept(r.member.currentClient(), kgo.Fetches{{Topics: []kgo.FetchTopic{bad}}})
			if err := r.fetchError(); !strings.Contains(err.Error(), "topic orders, partition 0") {
				t.Errorf("it says: %v", err)
			}
			expectBodies(t, r.take(2), "2", "3")
			r.wantNotes("given orders/0", "revoking orders/0", "lost orders/0", "given orders/0")
		})
	}
}

// deleteUnread deletes unread records of a partition: the consumer is at offset 10, and the 20 records after this
// offset are deleted.
func (w *world) deleteUnread() {
	w.t.Helper()
	w.publish(0, numberedIDs("a", 1, 10)...)
	w.runOnce(nil)
	w.publish(0, numberedIDs("a", 11, 30)...)
	must(w.t, w.cluster.DeleteRecords(theTopic, 0, 30))
}

// startWithLog starts a process and returns the log of its source and its consumer.
func (w *world) startWithLog(change func(*Config)) *lockedBuffer {
	w.t.Helper()
	text := &lockedBuffer{}
	log := logTo(text)
	w.start(count, func(c *Config) {
		c.Logger = log
		if change != nil {
			change(c)
		}
	}, func(c *settings) { c.Logger = log })
	return text
}

func TestRecordsThatAreLost(t *testing.T) {
	inWorld(t, "I0_are_told_on_a_topic_where_nothing_comes_and_again_while_it_stands", 1, func(t *testing.T, w *world) {
		w.deleteUnread()
		text := w.startWithLog(nil)
		pass(2 * time.Minute)
		logSays(t, text, "offset 10 of group billing is no longer in the log", 2, 3)
		w.publish(0, "new")
		pass(time.Minute)
		if at := w.committedOffset(0); at != 10 || w.effect("new") != 0 {
			t.Errorf("records were skipped automatically: the group's offset is %d", at)
		}
	})
	inWorld(t, "I6_are_passed_over_loudly_where_the_policy_says_so", 2, func(t *testing.T, w *world) {
		w.deleteUnread()
		w.publish(0, "new")
		text := w.startWithLog(func(c *Config) { c.OnLostRecords = GoOn })
		w.waitCommitted(2 * time.Minute)
		w.expectOnce("new")
		expectContains(t, text.String(), "records are lost", "partition=0", "from=10", "to=29", "offsets=20")
		w.publish(0, "newer")
		w.publish(1, "beside")
		w.waitCommitted(time.Minute)
		w.expectOnce("newer", "beside")
		logSays(t, text, "records are lost", 1, 1)
	})
}

// losesMore deletes unread records of a partition while a process reads other records of the partition.
func (w *world) losesMore(partition int32) {
	w.t.Helper()
	unread := w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: theTopic, Partitions: []int32{partition}, Err: kerr.KafkaStorageError, Count: -1})
	w.publish(partition, "lost")
	must(w.t, w.cluster.DeleteRecords(theTopic, partition, w.end(partition)))
	unread.Remove()
}

func TestPartitionsThatLoseRecords(t *testing.T) {
	const soon = 5 * time.Second
	goOn := func(c *Config) { c.OnLostRecords = GoOn }
	inWorld(t, "I6_one_after_the_other_go_on_at_once_each", 6, func(t *testing.T, w *world) {
		for partition := range int32(6) {
			w.publish(partition, fmt.Sprint("a", partition))
		}
		text := w.startWithLog(goOn)
		w.waitCommitted(time.Minute)
		for partition := range int32(6) {
			w.losesMore(partition)
			id := fmt.Sprint("b", partition)
			w.publish(partition, id)
			w.waitApplied(soon, id)
		}
		w.waitCommitted(time.Minute)
		w.expectNoEffect("lost")
		logSays(t, text, "records are lost", 6, 6)
	})
	inWorld(t, "I6_go_on_at_once_beside_a_topic_whose_deletion_hangs", 1, func(t *testing.T, w *world) {
		w.publish(0, "a")
		w.create("orders.eu", "b")
		w.start(count, withPattern(`orders.*`, goOn), nil)
		w.waitApplied(time.Minute, "a", "b")
		w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: "orders.eu", Err: kerr.UnknownTopicID, Count: -1})
		pass(3 * time.Minute)
		w.losesMore(0)
		w.publish(0, "c")
		w.waitApplied(soon, "c")
		w.expectNoEffect("lost")
	})
}

func TestWhyALaneIsLostIsTold(t *testing.T) {
	inWorld(t, "I0_the_group_took_nothing_away_when_it_could_not_be_reached", 1, func(t *testing.T, w *world) {
		text := w.startWithLog(nil)
		w.publish(0, "a")
		w.waitCommitted(time.Minute)
		fault := w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.GroupAuthorizationFailed, Count: -1})
		w.waitUntil(time.Minute, "the lane is lost", func() bool { return strings.Contains(text.String(), "lane lost") })
		if fault.Hits() == 0 || strings.Contains(text.String(), "took") || !strings.Contains(text.String(), "may not use group billing") {
			t.Errorf("%d faults, and the log says:\n%s", fault.Hits(), text.String())
		}
	})
	inWorld(t, "I0_the_group_took_it_away_when_the_member_was_forgotten", 1, func(t *testing.T, w *world) {
		text := w.startWithLog(nil)
		w.publish(0, "a")
		w.waitCommitted(time.Minute)
		fault := w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Err: kerr.UnknownMemberID, Count: 1})
		w.waitUntil(time.Minute, "the log reports it", func() bool {
			return strings.Contains(text.String(), "the group removed this member and took its partitions")
		})
		if fault.Hits() == 0 {
			t.Error("nothing was forgotten")
		}
	})
}
