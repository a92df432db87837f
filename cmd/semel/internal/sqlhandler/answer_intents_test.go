package sqlhandler

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
)

func TestTheIntentsOfAResponse(t *testing.T) {
	m := &semel.Message{Body: []byte("own")}
	read := func(t *testing.T, answer string) []semel.Intent {
		t.Helper()
		all, err := effectsOf(t, SQLite()).Read([]byte(answer), m)
		if err != nil {
			t.Fatal(err)
		}
		return all.Intents
	}
	t.Run("K10_an_intent_is_what_the_answer_says", func(t *testing.T) {
		got := read(t, `{"intents":[
			{"to":"mailer","purpose":"confirmation","type":"mail","recipient":"a@b","key":"k-1","headers":{"x-b":"2","x-a":"1"},"body":{"n": 1.50}},
			{"to":"receipts","purpose":"receipt","body_base64":"AP8="},
			{"to":"receipts","purpose":"other"}]}`)
		want := []semel.Intent{
			{To: "mailer", Purpose: "confirmation", Type: "mail", Recipient: "a@b", Key: "k-1", Body: []byte(`{"n": 1.50}`),
				Headers: semel.Headers{{Name: "x-a", Value: []byte("1")}, {Name: "x-b", Value: []byte("2")}}},
			{To: "receipts", Purpose: "receipt", Body: []byte{0, 255}},
			{To: "receipts", Purpose: "other", Body: []byte("own")},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("K10_law_15_a_wrong_one_refuses_the_answer_whole_and_shows_nothing_of_it", func(t *testing.T) {
		good := `{"to":"mailer","purpose":"confirmation","recipient":"` + secret + `"}`
		for _, c := range [][2]string{
			{`{}`, `"intents" is not a list`},
			{`[` + good + `,7]`, "intent 2: it is not an object"},
			{`[` + good + `,` + good + `]`, "intent 2: another intent has the same sender, purpose and recipient"},
			{`[{"to":"mailer"}]`, `intent 1: it has no "purpose"`},
			{`[{"purpose":"p"}]`, "does not allow this endpoint intents for this sender"},
			{`[{"to":"` + secret + `","purpose":"p"}]`, "does not allow this endpoint intents for this sender"},
			{strings.Replace(`[`+good+`]`, `"purpose"`, `"id":"x","purpose"`, 1), "it is not an object with only the members of an intent"},
			{`[{"to":"mailer","purpose":1}]`, `its "purpose" is not text`},
			{strings.Replace(`[`+good+`]`, `"purpose"`, `"body":1,"body_base64":"","purpose"`, 1), `both "body" and "body_base64"`},
			{strings.Replace(`[`+good+`]`, `"purpose"`, `"body_base64":"`+secret+`","purpose"`, 1), "not valid base64"},
			{strings.Replace(`[`+good+`]`, `"purpose"`, `"body_base64":1,"purpose"`, 1), `"body_base64" is not text`},
			{strings.Replace(`[`+good+`]`, `"purpose"`, `"headers":[],"purpose"`, 1), `"headers" is not an object`},
			{strings.Replace(`[`+good+`]`, `"purpose"`, `"headers":{"x":1},"purpose"`, 1), "one of its headers is not text"},
			{strings.Replace(`[`+good+`]`, `"purpose"`, `"headers":{"Semel-Intent-Key":"`+secret+`"},"purpose"`, 1), "an invalid name, or a name reserved for Semel"},
			{strings.Replace(`[`+good+`]`, `"purpose"`, `"headers":{"ce_id":"`+secret+`"},"purpose"`, 1), "an invalid name, or a name reserved for Semel"},
			{strings.Replace(`[`+good+`]`, `"purpose"`, `"headers":{"a b":"`+secret+`"},"purpose"`, 1), "an invalid name, or a name reserved for Semel"},
			{`[` + manyIntents(MostEffects+1) + `]`, "more than 1000 intents"},
		} {
			all, err := effectsOf(t, Postgres()).Read([]byte(`{"effects":[{"statement":"tick"}],"intents":`+c[0]+`}`), m)
			var decided *semel.HandlerError
			if all != nil || !errors.As(err, &decided) || decided.Decision != semel.DecidePermanent || decided.Reason != reasonname.BadEffects || !strings.Contains(err.Error(), c[1]) {
				t.Errorf("%.200s: %v, %v", c[0], all, err)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the response: %v", err)
			}
		}
	})
}

// manyIntents returns n intents with different recipients.
func manyIntents(n int) string {
	var all []string
	for i := range n {
		all = append(all, `{"to":"mailer","purpose":"p","recipient":"`+strings.Repeat("x", i)+`"}`)
	}
	return strings.Join(all, ",")
}
