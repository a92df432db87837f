package kafka_test

import (
	"maps"
	"testing"
	"time"

	"github.com/semel-go/semel/itest/must"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/kafka"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestHowLateARecordOfARealTopicCanComeAgain(t *testing.T) {
	t.Parallel()
	t.Run("trap_T64_it_is_what_the_brokers_say_now", func(t *testing.T) {
		const day = 24 * time.Hour
		topic := services.Topic(t, services.Kafka(t), 1, "retention.ms=172800000", "segment.ms=86400000", "message.timestamp.after.max.ms=3600000")
		s := newSource(t, config(t, topic))
		want := source.Horizon{
			Late: 3*day + time.Hour + 5*time.Minute,
			Why:  "topic " + topic + ": retention.ms 2d + segment.ms 1d + message.timestamp.after.max.ms 1h + 5m until the brokers remove it",
		}
		if h, err := s.Info().Horizon(t.Context()); err != nil || h != want {
			t.Fatalf("it is %+v, %v", h, err)
		}
		for _, one := range []struct{ name, value, before string }{{"cleanup.policy", "compact", "delete"}, {"retention.ms", "-1", "172800000"}} {
			set(t, topic, one.name, one.value)
			awaitHorizon(t, s, source.Horizon{Unlimited: true, Why: "topic " + topic + ": " + one.name + " is " + one.value})
			set(t, topic, one.name, one.before)
			awaitHorizon(t, s, want)
		}
	})
}

func TestHowFarTheLanesOfARealTopicAre(t *testing.T) {
	t.Parallel()
	for name, brokers := range map[string]bool{"H2_by_the_times_of_producers": false, "H2_by_the_times_of_the_brokers": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setting := map[bool]string{false: "message.timestamp.type=CreateTime", true: "message.timestamp.type=LogAppendTime"}[brokers]
			topic := services.Topic(t, services.Kafka(t), 2, setting, "retention.ms=-1")
			at := time.Now().Add(-20 * 24 * time.Hour).Truncate(time.Second)
			began := time.Now().Truncate(time.Second)
			must.OK(t, client(t).ProduceSync(t.Context(), &kgo.Record{Topic: topic, Timestamp: at, Value: []byte("a")}).FirstErr())
			s := newSource(t, config(t, topic))
			got := take(t, s, 1)
			written := got[0].Message.Origin.Time()
			if brokers == written.Equal(at) || brokers && written.Before(began) {
				t.Errorf("it was written at %v, as its delivery says", written)
			}
			awaitAges(t, s, map[string]time.Time{topic + "/0": written, topic + "/1": {}})
			ack(t, s, got...)
			awaitAges(t, s, map[string]time.Time{topic + "/0": {}, topic + "/1": {}})
		})
	}
}

// awaitAges waits until a source reports the ages of exactly the lanes of the parameter want, and has no lane with an
// unknown age.
func awaitAges(t testing.TB, s *kafka.Source, want map[string]time.Time) {
	t.Helper()
	told, all := map[string]time.Time{}, false
	is := services.Within(patience, func() bool {
		var lanes []source.LaneAge
		lanes, all = s.Info().Ages()
		told = map[string]time.Time{}
		for _, l := range lanes {
			told[l.Lane] = l.Oldest.Truncate(time.Second)
		}
		return all && maps.EqualFunc(told, want, time.Time.Equal)
	})
	if !is {
		t.Fatalf("it tells %v, all %t; not %v", told, all, want)
	}
}

// awaitHorizon waits until a source reports the horizon want: the time for which the source can repeat messages. The
// wait is needed because a broker confirms a changed setting when the setting is in the log of the cluster's metadata,
// and uses the setting only after the broker has read that log.
func awaitHorizon(t testing.TB, s *kafka.Source, want source.Horizon) {
	t.Helper()
	var h source.Horizon
	var err error
	is := services.Within(patience, func() bool {
		h, err = s.Info().Horizon(t.Context())
		return err == nil && h == want
	})
	if !is {
		t.Fatalf("it is %+v, %v; not %+v", h, err, want)
	}
}

func set(t testing.TB, topic, name, value string) {
	t.Helper()
	all, err := kadm.NewClient(client(t)).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic)
	if err != nil || all[0].Err != nil {
		t.Fatal(err, all)
	}
}
