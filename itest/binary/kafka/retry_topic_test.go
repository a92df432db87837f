//go:build unix

package kafka

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semel-go/semel/itest/services"
)

// retryPage writes the policy of docs/operate/dead-letters.md with the topics and names of this test.
func (s deadLetterFixture) retryPage(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/operate/dead-letters.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	if !found {
		t.Fatal("docs/operate/dead-letters.md has no policy")
	}
	s.write(t, "page.yaml", strings.NewReplacer(
		"topics: payments-dead", "topics: "+s.letters, `"${DATABASE_URL}"}}`, `"${DATABASE_URL}"}, migrate: true}`, `"header:semel-consumer": billing`, `"header:semel-consumer": `+s.name("billing"),
		"  complaints:", "  "+s.name("complaints")+":", "  nameless:", "  "+s.name("nameless")+":").Replace(text))
	services.Exec(t, s.dsn, `create table complaints (payment text, error text, topic text, number text)`)
	services.Exec(t, s.dsn, `create table nameless (topic text, number text)`)
}

func TestATopicOfDeadLettersIsTheSourceOfAnotherConsumer(t *testing.T) {
	s := newDeadLetterFixture(t)
	s.retryPage(t)
	s.produce(t, payment(s.topic, "a", "eve"), payment(s.topic, "b", "eve"))
	s.run(t, "dead.yaml", 0) // two consumers and two messages: four dead letters
	twice := func(offset string) []*kgo.Record {
		one, other := s.letterOf("billing", offset), s.letterOf("billing", offset)
		other[5] = "2" // number of attempts
		return []*kgo.Record{payment(s.letters, "", "eve", one...), payment(s.letters, "", "eve", other...)}
	}
	s.produce(t, append(twice("7"), twice("8")...)...)
	for range 2 {
		s.run(t, "page.yaml", 0)
	}
	t.Run("I5_of_a_letter_and_its_copies_one_takes_effect_under_the_identity_of_its_record", func(t *testing.T) {
		var all, a int
		query(t, s.dsn, `select count(*), count(*) filter (where payment = 'a' and topic = '`+s.topic+`' and number = '0' and error <> '') from complaints`, &all, &a)
		if all != 2 || a != 1 {
			t.Errorf("%d complaints, %d of a", all, a)
		}
	})
	t.Run("I5_the_place_of_the_record_is_an_identity_of_what_has_none", func(t *testing.T) {
		var all, places int
		query(t, s.dsn, `select count(*), count(distinct topic || number) from nameless`, &all, &places)
		if all != 4 || places != 4 { // two dead letters of the consumer itself, and two dead letters that occur twice
			t.Errorf("%d effects of %d places", all, places)
		}
	})
}

func TestARetryTopicOfAnotherFrameworkHasTheIdentityOfItsMessages(t *testing.T) {
	s := newFixture(t, 1)
	retries := services.Topic(t, s.brokers, 1)
	s.write(t, "semel.yaml", fmt.Sprintf(`version: 1
stores: {shop: {postgres: {url: "${DATABASE_URL}"}, migrate: true}}
sources:
  payments: {kafka: {brokers: "${KAFKA_BROKERS}", topics: [%s, %s]}}
  retries: {kafka: {brokers: "${KAFKA_BROKERS}", topics: %s, format: records}}
consumers:%s
  %s:
    from: retries
    store: shop
    identity: {id: ["header:kafka_original-topic", "header:kafka_original-partition", "header:kafka_original-offset"]}
    handler:
      sql:
        params: {topic: "header:kafka_original-topic"}
        statements: ["insert into entries values ('places', :topic, 1)"]
`, s.topic, retries, retries, s.consumer("billing", "payments", ""), s.name("places")))
	again := func(id string, offset uint64) *kgo.Record {
		return &kgo.Record{Topic: retries, Value: []byte(`{"amount":1}`), Headers: []kgo.RecordHeader{
			{Key: "ce_id", Value: []byte(id)}, {Key: "ce_source", Value: []byte("shop")}, {Key: "ce_specversion", Value: []byte("1.0")}, {Key: "ce_type", Value: []byte("payment")},
			{Key: "kafka_original-topic", Value: []byte(s.topic)}, {Key: "kafka_original-partition", Value: binary.BigEndian.AppendUint32(nil, 0)},
			{Key: "kafka_original-offset", Value: binary.BigEndian.AppendUint64(nil, offset)}, {Key: "retry_topic-attempts", Value: binary.BigEndian.AppendUint32(nil, 2)},
		}}
	}
	s.produce(t, s.makePayments(1, 3)...)
	s.produce(t, again("p1", 0), again("p1", 0), again("p2", 1), again("p9", 8))
	for range 2 {
		s.run(t, "semel.yaml", 0)
	}
	t.Run("I5_of_a_message_and_its_copies_in_the_retry_topic_one_takes_effect", func(t *testing.T) { s.wantOnce(t, "billing", 4) })
	t.Run("I5_the_place_that_it_says_is_an_identity", func(t *testing.T) {
		if all, _ := s.countEntries(t, "places"); all != 3 {
			t.Errorf("%d effects of 3 places", all)
		}
	})
}
