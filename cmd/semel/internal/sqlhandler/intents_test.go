package sqlhandler

import (
	"errors"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/reasonname"
)

func TestIntentsOfAMessage(t *testing.T) {
	h := compile(t, Config{
		Statements: []Statement{{SQL: "select 1"}},
		Intents: []Intent{{To: "mailer", Purpose: "receipt", Type: "mail", Recipient: "body:/to", Key: "body:/key",
			Body: []Param{{Name: "amount", Selector: "body:/amount"}, {Name: "who", Selector: "body:/to"}, {Name: "paid", Selector: "body:/paid"}, {Name: "note", Selector: "body:/note?"}}}},
	})
	t.Run("E1_have_what_the_selectors_find_and_numbers_keep_their_digits", func(t *testing.T) {
		all, err := h.Intents(body(`{"to": "ann \"a\"", "key": 7, "amount": 1.50, "paid": true}`))
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		n := all[0]
		if n.To != "mailer" || n.Purpose != "receipt" || n.Type != "mail" || n.Recipient != `ann "a"` || n.Key != "7" ||
			string(n.Body) != `{"amount":1.50,"who":"ann \"a\"","paid":true,"note":null}` {
			t.Errorf("%+v, with the body %s", n, n.Body)
		}
	})
	for name, text := range map[string]string{
		"is_missing": `{"key": "k", "amount": 1, "paid": true}`,
		"is_null":    `{"to": null, "key": "k", "amount": 1, "paid": true}`,
	} {
		t.Run("law_7_a_value_that_"+name+"_ends_the_message", func(t *testing.T) {
			all, err := h.Intents(body("%s", text))
			var decided *semel.HandlerError
			if all != nil || !errors.As(err, &decided) || decided.Decision != semel.DecidePermanent || decided.Reason != reasonname.MissingParameter {
				t.Errorf("%+v, %v", all, err)
			}
		})
	}
}
