package kafka

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/kafka/internal/deadletter"
	"github.com/semel-go/semel/source"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

func sameHeader(a, b semel.Header) bool { return a.Name == b.Name && bytes.Equal(a.Value, b.Value) }

// setAside reads the one record of a topic for a consumer, and returns its message and the
// letter that it became.
func setAside(t *testing.T, c Config) (*semel.Message, Letter) {
	t.Helper()
	r := read(t, c)
	if err := r.Info().DeadLetters(c.Group); err != nil {
		t.Fatal(err)
	}
	got := r.take(1)
	dead := []source.Settlement{{Delivery: &got[0], Kind: semel.DeadLetter, Reason: semel.ReasonExhausted, Attempts: 3, Err: errors.New("no account")}}
	if left, err := r.Settle(t.Context(), dead); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	all := readLetters(t, c)
	if len(all) != 1 {
		t.Fatalf("%d letters", len(all))
	}
	return got[0].Message, all[0]
}

// Consumers read each other's dead letters in a row; each must find again what it was given.
func TestALetterOfALetter(t *testing.T) {
	topics := []string{"orders", "dead1", "dead2", "dead3", "dead4", "dead5", "dead6"}
	cluster := cluster(t, kfake.SeedTopics(1, topics...))
	record := &kgo.Record{Topic: "orders", Key: []byte("k"), Value: []byte("v"), Headers: []kgo.RecordHeader{
		{Key: "ce_id", Value: []byte("x")}, {Key: "semel-was-mine", Value: []byte("the producer's")}, {Key: HeaderLength + "s", Value: []byte("1")},
	}}
	if err := newProducer(t, cluster.ListenAddrs()).ProduceSync(t.Context(), record).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for n, from := range topics[:len(topics)-1] {
		was, letter := setAside(t, quiet(Config{Brokers: cluster.ListenAddrs(), Topics: []string{from}, Group: "of-" + from, DeadLetters: topics[n+1]}))
		m := letter.Delivery.Message
		t.Run("I5_the_message_is_as_its_consumer_got_it/"+from, func(t *testing.T) {
			if letter.Foreign || m.ID() != "x" || m.Topic != from || m.Origin.Offset != was.Origin.Offset || string(m.Key) != "k" || string(m.Body) != "v" {
				t.Errorf("it is %+v, and was %+v", m, was)
			}
			if n <= deadletter.MostWas && !slices.EqualFunc(m.Headers, was.Headers, sameHeader) {
				t.Errorf("its headers are\n%v, and were\n%v", m.Headers, was.Headers)
			}
		})
		t.Run("I5_the_first_origin_is_kept_for_four_letters/"+from, func(t *testing.T) {
			if n == 0 {
				return // it is the first
			}
			origin, kept := m.Headers.Get("semel-" + strings.Repeat("was-", n-1) + "topic")
			if kept != (n <= deadletter.MostWas) || kept && string(origin) != "orders" {
				t.Errorf("it says %q: %v", origin, m.Headers)
			}
		})
	}
}
