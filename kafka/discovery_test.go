package kafka

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/retention"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// answeredAs returns a broker's answer to a metadata request for a topic.
func answeredAs(topic string, id byte, err *kerr.Error) kmsg.MetadataResponseTopic {
	t := kmsg.NewMetadataResponseTopic()
	t.Topic, t.TopicID = kmsg.StringPtr(topic), [16]byte{id}
	if err != nil {
		t.ErrorCode = err.Code
	}
	return t
}

func TestATopicsIdIsOfAnAnswerWithoutError(t *testing.T) {
	t.Run("trap_T92_an_answer_with_an_error_makes_no_other_topic_of_it", func(t *testing.T) {
		s, err := New(quiet(Config{Brokers: []string{"127.0.0.1:1"}, Topics: []string{theTopic}, Group: theGroup}))
		must(t, err)
		must(t, s.topics.note(1, []kmsg.MetadataResponseTopic{answeredAs(theTopic, 7, nil)}))
		for _, refusal := range []*kerr.Error{kerr.LeaderNotAvailable, kerr.TopicAuthorizationFailed, kerr.UnknownTopicOrPartition} {
			if err := s.topics.note(1, []kmsg.MetadataResponseTopic{answeredAs(theTopic, 0, refusal)}); !errors.Is(err, refusal) {
				t.Errorf("the answer %v is returned as %v", refusal, err)
			}
			if id := s.topics.ids[theTopic]; id != [16]byte{7} {
				t.Errorf("after the answer %v the topic's id is %v", refusal, id)
			}
		}
	})
	inWorld(t, "trap_T92_a_look_that_is_refused_shows_no_topic_that_was_created_anew", 1, func(t *testing.T, w *world) {
		p, text := w.startAndReadAll()
		w.answerMetadata(answeredAs(theTopic, 0, kerr.LeaderNotAvailable))
		if err := p.source.topics.checkTopicIDs(t.Context()); !errors.Is(err, kerr.LeaderNotAvailable) {
			t.Errorf("the refused look says: %v", err)
		}
		if err := p.source.topics.checkTopicIDs(t.Context()); err != nil {
			t.Errorf("the next look says: %v", err)
		}
		pass(time.Minute)
		if strings.Contains(text.String(), "created again") {
			t.Errorf("the log says:\n%.3000s", text.String())
		}
	})
	inWorld(t, "trap_T92_a_topic_that_was_created_anew_is_noticed_where_another_one_is_refused", 1, func(t *testing.T, w *world) {
		p, text := w.startAndReadAll()
		w.answerMetadata(answeredAs("other", 0, kerr.LeaderNotAvailable), answeredAs(theTopic, 7, nil))
		if err := p.source.topics.checkTopicIDs(t.Context()); err == nil {
			t.Error("the look is not refused")
		}
		pass(time.Minute)
		if !strings.Contains(text.String(), "reason=\"topic orders was created again\"") {
			t.Errorf("the log says:\n%.3000s", text.String())
		}
	})
}

// startAndReadAll starts a consumer process, and waits until the process has read all records.
func (w *world) startAndReadAll() (*process, *lockedBuffer) {
	w.t.Helper()
	w.publish(0, "a")
	text := &lockedBuffer{}
	p := w.startSettled(func(c *Config) { c.Logger = logTo(text) })
	return p, text
}

// answerMetadata answers the next metadata request for a topic.
func (w *world) answerMetadata(topics ...kmsg.MetadataResponseTopic) {
	w.cluster.ControlKey(int16(kmsg.Metadata), func(request kmsg.Request) (kmsg.Response, error, bool) {
		asked := request.(*kmsg.MetadataRequest)
		if len(asked.Topics) == 0 {
			w.cluster.KeepControl()
			return nil, nil, false
		}
		response := asked.ResponseKind().(*kmsg.MetadataResponse)
		response.Topics = topics
		return response, nil, true
	})
}

// setTopicConfig changes settings of a topic, given as pairs of name and value.
func (w *world) setTopicConfig(topic string, pairs ...string) {
	w.t.Helper()
	var changes []kadm.AlterConfig
	for pair := range slices.Chunk(pairs, 2) {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: pair[0], Value: &pair[1]})
	}
	all, err := kadm.NewClient(w.producer).AlterTopicConfigs(context.Background(), changes, topic)
	if err != nil || all[0].Err != nil {
		w.t.Fatal(err, all)
	}
}

// horizon returns a source's horizon: the time for which the source can repeat messages.
func (w *world) horizon(s *Source) source.Horizon {
	w.t.Helper()
	h, err := s.Info().Horizon(context.Background())
	must(w.t, err)
	return h
}

// threeDayRetention returns settings with which a record stays for threeDays.
func threeDayRetention() []string {
	return []string{retention.RetentionTime, "172800000", retention.SegmentTime, "86400000", retention.TimestampAhead, "3600000"}
}

const threeDays = 3*24*time.Hour + time.Hour + retention.RemovalCheck

func TestHowLateARecordCanComeAgain(t *testing.T) {
	inWorld(t, "trap_T64_settings_that_change_while_the_topic_is_read_are_told_when_asked_again", 1, func(t *testing.T, w *world) {
		w.setTopicConfig(theTopic, threeDayRetention()...)
		r := w.newReader(nil)
		want := source.Horizon{Late: threeDays, Why: "topic orders: retention.ms 2d + segment.ms 1d + message.timestamp.after.max.ms 1h + 5m until the brokers remove it"}
		if h := w.horizon(r.Source); h != want {
			t.Errorf("before the first fetch the horizon is %+v", h)
		}
		w.publish(0, "a")
		r.ack(r.take(1)...)
		w.setTopicConfig(theTopic, retention.RetentionTime, "604800000")
		if h := w.horizon(r.Source); h.Late != threeDays+5*24*time.Hour || !strings.Contains(h.Why, "retention.ms 7d") {
			t.Errorf("after the change the horizon is %+v", h)
		}
		w.setTopicConfig(theTopic, retention.RetentionTime, "-1")
		if h := w.horizon(r.Source); !h.Unlimited || h.Why != "topic orders: retention.ms is -1" {
			t.Errorf("with unlimited retention the horizon is %+v", h)
		}
	})
	inWorld(t, "H1_a_topic_that_is_only_compacted_has_no_horizon", 1, func(t *testing.T, w *world) {
		w.setTopicConfig(theTopic, append(threeDayRetention(), retention.Policy, "compact")...)
		r := w.newReader(nil)
		if h := w.horizon(r.Source); !h.Unlimited || h.Late != 0 || h.Why != "topic orders: cleanup.policy is compact" {
			t.Errorf("it is %+v", h)
		}
		w.setTopicConfig(theTopic, retention.Policy, "compact,delete")
		if h := w.horizon(r.Source); h.Unlimited || h.Late != threeDays {
			t.Errorf("with compact and delete the horizon is %+v", h)
		}
	})
	bubble(t, "trap_T64_the_topic_counts_in_which_records_stay_longest_dead_letters_too", func(t *testing.T) {
		w := newWorld(t, 1, kfake.SeedTopics(1, "letters"))
		w.setTopicConfig(theTopic, threeDayRetention()...)
		w.setTopicConfig("letters", threeDayRetention()...)
		w.setTopicConfig("letters", retention.RetentionTime, "864000000")
		r := w.newReader(func(c *Config) { c.DeadLetters = "letters" })
		if h := w.horizon(r.Source); h.Late != threeDays+8*24*time.Hour || !strings.HasPrefix(h.Why, "topic letters: retention.ms 10d") {
			t.Errorf("it is %+v", h)
		}
		w.setTopicConfig(theTopic, retention.RetentionTime, "-1")
		if h := w.horizon(r.Source); !h.Unlimited || !strings.HasPrefix(h.Why, "topic orders: ") {
			t.Errorf("with a topic without limit the horizon is %+v", h)
		}
	})
	inWorld(t, "trap_T64_of_a_pattern_all_topics_count_that_match_now", 1, func(t *testing.T, w *world) {
		w.setTopicConfig(theTopic, threeDayRetention()...)
		w.create("reorders")
		w.setTopicConfig("reorders", retention.RetentionTime, "-1")
		r := w.newReader(withPattern("nothing"))
		if h := w.horizon(r.Source); h.Late != 0 || h.Unlimited || !strings.Contains(h.Why, "no topic matches nothing") {
			t.Errorf("while no topic matches the horizon is %+v", h)
		}
		r = w.newReader(withPattern(allOrders))
		if h := w.horizon(r.Source); h.Late != threeDays || h.Unlimited {
			t.Errorf("it is %+v", h)
		}
		w.create("orders.eu")
		w.setTopicConfig("orders.eu", append(threeDayRetention(), retention.SegmentTime, "864000000")...)
		if h := w.horizon(r.Source); h.Late != threeDays+9*24*time.Hour || !strings.HasPrefix(h.Why, "topic orders.eu: ") {
			t.Errorf("with another topic the horizon is %+v", h)
		}
	})
}

func TestAHorizonThatIsNotKnown(t *testing.T) {
	inWorld(t, "H1_a_user_who_may_not_read_the_settings_is_told_which_right_is_missing", 1, func(t *testing.T, w *world) {
		w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.DescribeConfigs}, Err: kerr.TopicAuthorizationFailed, Count: -1})
		_, err := w.newReader(nil).Info().Horizon(t.Context())
		if !errors.Is(err, kerr.TopicAuthorizationFailed) || !strings.Contains(err.Error(), "topic orders") || !strings.Contains(err.Error(), "DESCRIBE_CONFIGS") {
			t.Errorf("it says %v", err)
		}
	})
	inWorld(t, "H1_a_topic_that_is_not_there_is_named", 1, func(t *testing.T, w *world) {
		_, err := w.newReader(func(c *Config) { c.Topics = []string{theTopic, "payments"} }).Info().Horizon(t.Context())
		if !errors.Is(err, kerr.UnknownTopicOrPartition) || !strings.Contains(err.Error(), "topic payments does not exist") {
			t.Errorf("it says %v", err)
		}
	})
	inWorld(t, "H1_brokers_that_do_not_answer_are_waited_for_only_for_a_while", 1, func(t *testing.T, w *world) {
		r := w.newReader(nil)
		wire := newWire(&w.network, 0)
		w.wires = append(w.wires, wire)
		wire.freeze()
		r.brokers.dial = wire.dial
		began := time.Now()
		if _, err := r.Info().Horizon(t.Context()); err == nil || time.Since(began) > time.Minute {
			t.Errorf("after %v the error is %v", time.Since(began), err)
		}
		wire.thaw()
	})
	bubble(t, "H1_a_source_that_is_closed_says_so", func(t *testing.T) {
		r := newWorld(t, 1).newReader(nil)
		must(t, r.Close(t.Context()))
		if _, err := r.Info().Horizon(t.Context()); !errors.Is(err, semel.ErrClosed) {
			t.Errorf("it says %v", err)
		}
	})
	inWorld(t, "H1_a_source_that_was_only_asked_is_closed_cleanly", 1, func(t *testing.T, w *world) {
		r := w.newReader(nil)
		w.horizon(r.Source)
		if err := r.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
