package kafka

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// answeredAs is an answer for a topic, as brokers give it.
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
		if err != nil {
			t.Fatal(err)
		}
		if err := s.topics.note(1, []kmsg.MetadataResponseTopic{answeredAs(theTopic, 7, nil)}); err != nil {
			t.Fatal(err)
		}
		for _, refusal := range []*kerr.Error{kerr.LeaderNotAvailable, kerr.TopicAuthorizationFailed, kerr.UnknownTopicOrPartition} {
			if err := s.topics.note(1, []kmsg.MetadataResponseTopic{answeredAs(theTopic, 0, refusal)}); !errors.Is(err, refusal) {
				t.Errorf("the answer %v is told as %v", refusal, err)
			}
			if id := s.topics.ids[theTopic]; id != [16]byte{7} {
				t.Errorf("after the answer %v the topic's id is %v", refusal, id)
			}
		}
	})
	bubble(t, "trap_T92_a_look_that_is_refused_shows_no_topic_that_was_created_anew", func(t *testing.T) {
		w := newWorld(t, 1)
		p, text := w.looks()
		w.answerMetadata(answeredAs(theTopic, 0, kerr.LeaderNotAvailable))
		if err := p.source.topics.same(t.Context()); !errors.Is(err, kerr.LeaderNotAvailable) {
			t.Errorf("the refused look says: %v", err)
		}
		if err := p.source.topics.same(t.Context()); err != nil {
			t.Errorf("the next look says: %v", err)
		}
		pass(time.Minute)
		if strings.Contains(text.String(), "created anew") {
			t.Errorf("the log says:\n%.3000s", text.String())
		}
	})
	bubble(t, "trap_T92_a_topic_that_was_created_anew_is_noticed_where_another_one_is_refused", func(t *testing.T) {
		w := newWorld(t, 1)
		p, text := w.looks()
		w.answerMetadata(answeredAs("other", 0, kerr.LeaderNotAvailable), answeredAs(theTopic, 7, nil))
		if err := p.source.topics.same(t.Context()); err == nil {
			t.Error("the look is not refused")
		}
		pass(time.Minute)
		if !strings.Contains(text.String(), "reason=\"topic orders was created anew\"") {
			t.Errorf("the log says:\n%.3000s", text.String())
		}
	})
}

// looks starts a process that has read what there is.
func (w *world) looks() (*process, *lockedBuffer) {
	w.t.Helper()
	w.publish(0, "a")
	text := &lockedBuffer{}
	p := w.start(count, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(text, nil)) }, nil)
	w.settles(time.Minute)
	return p, text
}

// answerMetadata answers the next look at a topic.
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
