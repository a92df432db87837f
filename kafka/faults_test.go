package kafka

import (
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
		put(t, p, "orders", 0, values(10)...)
		r := read(t, config)
		r.ack(r.take(10)[:3]...)
		r.close()
		truncate := kadm.Offsets{}
		truncate.AddOffset("orders", 0, 7, -1)
		if deleted, err := kadm.NewClient(p).DeleteRecords(t.Context(), truncate); err != nil || deleted.Error() != nil {
			t.Fatal(err, deleted.Error())
		}
		r = read(t, config)
		err := r.stands()
		for _, part := range []string{"topic orders, partition 0", "offset 3 of group billing", "now begins at 7", "--reset-offsets", "records were deleted before they were read"} {
			if !strings.Contains(err, part) {
				t.Errorf("it does not say %q: %s", part, err)
			}
		}
		put(t, p, "orders", 1, "other")
		wants(t, r.take(1), "other") // other lanes go on
		if again := r.stands(); again != err {
			t.Errorf("later it says: %s", again)
		}
		if at := offset(t, p, "billing", "orders", 0); at != 3 {
			t.Errorf("the group's offset jumped to %d", at)
		}
	})
}

func TestATopicThatIsDeletedAndCreatedAnewIsAnother(t *testing.T) {
	t.Run("trap_45_its_lane_is_lost_and_it_is_read_from_its_beginning", func(t *testing.T) {
		c := cluster(t, kfake.SeedTopics(1, "orders"))
		p := newProducer(t, c.ListenAddrs())
		put(t, p, "orders", 0, values(3)...)
		r := read(t, Config{Brokers: c.ListenAddrs(), Topics: []string{"orders"}, Group: "billing"})
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
			t.Errorf("a lane that is gone left %v: %v", left, err)
		}
		if err := r.fails(); !strings.Contains(err.Error(), "topic orders") || !strings.Contains(err.Error(), "deleted") {
			t.Errorf("it says: %v", err)
		}
		put(t, newProducer(t, c.ListenAddrs()), "orders", 0, "new")
		got := r.take(1)
		wants(t, got, "new")
		if got[0].Message.Origin.Offset != 0 || got[0].Message.Origin.BrokerID == old[0].Message.Origin.BrokerID {
			t.Errorf("the origin is %+v, and was %+v", got[0].Message.Origin, old[0].Message.Origin)
		}
		r.ack(got...)
		if n := timesTold(r.notes(), "lost orders/0"); n != 1 {
			t.Errorf("the observer was told %v", r.notes())
		}
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
	if err := r.fails(); !strings.Contains(err.Error(), "may not use group billing; allow it READ on the group") {
		t.Errorf("it says: %v", err)
	}
	wants(t, r.take(1), "0") // it was allowed meanwhile
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
			if err != nil {
				t.Fatal(err)
			}
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
		r.none(300 * time.Millisecond)
		r.ack(all[:1]...) // what was handed back may be settled all the same
		if at := offset(t, c, "billing", "orders", 0); at != 1 {
			t.Errorf("the group's offset is %d", at)
		}
	})
}

func TestAPausedLaneKeepsWhatWasPolled(t *testing.T) {
	config, c := setUp(t)
	put(t, c, "orders", 0, values(100)...)
	r := read(t, config)
	got := r.take(1)
	lane := got[0].Lane
	ctx, cancel := contextFor(t, patience)
	defer cancel()
	some, err := r.Fetch(ctx, source.Bound{Messages: 50, Bytes: 1}) // polls fifty and returns one
	if err != nil || len(some) != 1 {
		t.Fatal(some, err)
	}
	r.Flow(lane, false)
	r.none(300 * time.Millisecond)
	r.Flow(lane, true)
	got = append(append(got, some...), r.take(98)...)
	if !slices.Equal(bodies(got), values(100)) {
		t.Errorf("came %s", shown(got))
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
			r.intake.accept(r.member.current(), kgo.Fetches{{Topics: []kgo.FetchTopic{bad}}})
			if err := r.fails(); !strings.Contains(err.Error(), "topic orders, partition 0") {
				t.Errorf("it says: %v", err)
			}
			wants(t, r.take(2), "2", "3")
			if want := []string{"given orders/0", "revoking orders/0", "lost orders/0", "given orders/0"}; !slices.Equal(r.notes(), want) {
				t.Errorf("the observer was told %v", r.notes())
			}
		})
	}
}
