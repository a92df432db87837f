package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/consumer"
)

// reEmitting is a policy whose consumer sends intents again for duplicates.
const reEmitting = `version: 1
stores:
  shop: {sqlite: {path: shop.db}}
sources:
  orders: {file: {path: in.jsonl, format: cloudevents}}
consumers:
  orders:
    from: orders
    store: shop
    strategy: marker
    identity: {id: id, source: source}
    on_duplicate: re_emit
    handler:
      sql:
        params: {id: id}
        statements: ["insert into placed values (:id)"]
        intents: [{to: mailer, purpose: confirmation}, {to: receipts, purpose: receipt}, {to: charger, purpose: charge}]
  mailer:
    store: shop
    strategy: lease
    alerts: {pending_age: 60s}
    handler: {http: {url: "https://mails.example/send"}}
  charger:
    store: shop
    strategy: lease
    alerts: {pending_age: 60s}
    handler: {http: {url: "https://bank.example/charge", window: 1h}}
  receipts:
    store: shop
    strategy: lease
    alerts: {pending_age: 60s}
    handler: {kafka: {brokers: "127.0.0.1:9092", topic: receipts}}
`

func TestAConsumerThatSendsAgain(t *testing.T) {
	env := func(string) (string, bool) { return "", false }
	t.Run("C12_knows_for_how_long_its_senders_may", func(t *testing.T) {
		p, faults := Parse("semel.yaml", []byte(reEmitting), env)
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		c := p.Consumer("orders")
		windows := p.SenderWindows(c)
		if c.Config().ReEmitIntents != true || len(windows) != 3 || windows["charger"] != time.Hour || windows["mailer"] != consumer.Defaults().Provider.Window || windows["receipts"] != consumer.WindowAlways {
			t.Errorf("%v, %v", c.Config().ReEmitIntents, windows)
		}
		if p.SenderWindows(p.Consumer("mailer")) != nil {
			t.Error("a consumer that sends nothing again has windows")
		}
	})
	const mails, statements, by = `url: "https://mails.example/send"`, `["insert into placed values (:id)"]`, "strategy: marker"
	for name, is := range map[string]struct {
		want  string
		edits []string
	}{
		"without_intents":      {"consumers.orders.on_duplicate: the handler writes no intents", []string{"        intents: [{to: mailer, purpose: confirmation}, {to: receipts, purpose: receipt}, {to: charger, purpose: charge}]\n", ""}},
		"without_a_marker":     {"consumers.orders.on_duplicate: without a marker", []string{by, `strategy: {natural: {because: "order: irrelevant"}}`}},
		"by_a_sender":          {"consumers.mailer.on_duplicate: a consumer without from sends intents", []string{"  mailer:\n", "  mailer:\n    on_duplicate: re_emit\n"}},
		"of_no_key":            {"consumers.orders.handler.sql.intents[0].to: on_duplicate is re_emit, and sender mailer sends no key", []string{mails, mails + `, key: none, may_double: "nobody minds"`}},
		"of_no_window":         {"sender charger calls an endpoint without keys", []string{"window: 1h", "window: none"}},
		"of_what_is_applied":   {"sender mailer applies the effects in the response", []string{mails, mails + ", effects: {intents: [receipts]}"}},
		"of_an_unknown_sender": {`there is no consumer "maler"`, []string{"to: mailer", "to: maler"}},
		"of_an_unknown_word":   {"consumers.orders.on_duplicate", []string{"re_emit", "reemit"}},
		"in_redis": {"consumers.orders.on_duplicate: the store is Redis", []string{"shop: {sqlite: {path: shop.db}}", "shop: {redis: {addresses: [\"127.0.0.1:6379\"], prefix: pay, persistence: seconds, because: x}}",
			by, "strategy: lease\n    retention: 30d\n    lanes: none\n    on_conflict: halt\n    on_bad_identity: halt\n    retry: {on_exhausted: halt}", "      sql:\n        params: {id: id}\n        statements: " + statements, `      http: {url: "https://bank.example/charge"}`,
			"        intents: [{to: mailer, purpose: confirmation}, {to: receipts, purpose: receipt}, {to: charger, purpose: charge}]\n", ""}},
	} {
		t.Run("C12_is_refused_"+name, func(t *testing.T) {
			if _, faults := Parse("semel.yaml", []byte(strings.NewReplacer(is.edits...).Replace(reEmitting)), env); !strings.Contains(faultLines(faults), is.want) {
				t.Errorf("%s; want %s", faultLines(faults), is.want)
			}
		})
	}
	t.Run("C12_from_an_endpoint_that_writes_intents", func(t *testing.T) {
		text := strings.NewReplacer(by, "strategy: lease\n    alerts: {pending_age: 60s}",
			"      sql:\n        params: {id: id}\n        statements: "+statements+"\n", "      http: {url: \"https://orders.example/place\", effects: {intents: [charger]}}\n",
			"        intents: [{to: mailer, purpose: confirmation}, {to: receipts, purpose: receipt}, {to: charger, purpose: charge}]\n", "").Replace(reEmitting)
		p, faults := Parse("semel.yaml", []byte(text), env)
		if len(faults) > 0 || len(p.SenderWindows(p.Consumer("orders"))) != 1 {
			t.Errorf("%s", faultLines(faults))
		}
	})
}
