package policy

import (
	"testing"
)

const whole = `version: 1
stores:
  shop: {sqlite: {path: shop.db}, migrate: true}
sources:
  payments:
    file: {path: payments.jsonl, format: envelope}
consumers:
  billing:
    from: payments
    store: shop
    strategy: marker
    identity: {id: "header:ce-id", source: "header:ce-source"}
    handler:
      sql:
        params: {account: "body:/account", amount: "body:/amount"}
        statements:
          - update accounts set balance = balance + :amount where id = :account
`

func noEnvironment(string) (string, bool) { return "", false }

func TestAShortPolicyReads(t *testing.T) {
	p, faults := Parse("dir/semel.yaml", []byte(whole), noEnvironment)
	for _, f := range faults {
		t.Error(f)
	}
	if t.Failed() {
		return
	}
	c := p.Consumer("billing")
	if c.Workers != 8 || c.Retry.Most != c.Hold || p.Store("shop").SQLite.Path != "dir/shop.db" {
		t.Errorf("defaults: %+v", c)
	}
}
