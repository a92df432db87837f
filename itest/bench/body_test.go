package bench

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/itest/must"
)

func TestAMessageHasABodyOfTheLengthThatWasAsked(t *testing.T) {
	for text, size := range map[string]int{"200": 200, "200B": 200, "1KiB": 1024, "10KiB": 10240} {
		body := must.Get(SizedBody(text))(t)
		for _, m := range (Conditions{Effect: Insert, IDs: UUIDv7, Body: body}).makeDeliveries(300).timed {
			if len(m.Body) != size || !json.Valid(m.Body) {
				t.Fatalf("of %s it has %d bytes: %s", text, len(m.Body), m.Body)
			}
		}
	}
}

func TestABodyChangesNoPayment(t *testing.T) {
	body := must.Get(SizedBody("1KiB"))(t)
	c := Conditions{Effect: Accounts, IDs: UUIDv4, Duplicates: 50}
	plain := c.makeDeliveries(100)
	c.Body = body
	for i, m := range c.makeDeliveries(100).timed {
		want, err := semel.JSON[payment](plain.timed[i])
		if got, wrong := semel.JSON[payment](m); err != nil || wrong != nil || got != want {
			t.Fatalf("%+v became %+v: %v, %v", want, got, err, wrong)
		}
	}
}

func TestWebhooksAreCarriedInTurn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.json")
	must.OK(t, os.WriteFile(file, []byte(`[{"examples":[{"account": "a"}, {"b": 2}]}]`), 0o644))
	body := must.Get(WebhookBody(file))(t)
	all := (Conditions{Effect: Insert, IDs: Text, Body: body}).makeDeliveries(2).timed
	if one, other := string(all[0].Body), string(all[1].Body); !strings.HasSuffix(one, `"event":{"b":2}}`) || !strings.HasSuffix(other, `"event":{"account":"a"}}`) {
		t.Errorf("%s and %s", one, other)
	}
	if _, err := WebhookBody(file + ".gone"); err == nil || !strings.Contains(err.Error(), "scripts/fetch-webhooks prints the path") {
		t.Error(err)
	}
}

func TestALengthThatIsNoneIsRefused(t *testing.T) {
	for text, want := range map[string]string{"": "is not a length", "ten": "is not a length", "-1": "is not a length", "20B": "too short"} {
		if b, err := SizedBody(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", text, b, err)
		}
	}
}

func TestABaseRowIsOneWithAnyBody(t *testing.T) {
	body := must.Get(SizedBody("200B"))(t)
	c := Base(Queue)
	c.Body = body
	if !c.IsBase() || !Base(Handle).IsBase() {
		t.Error("a base row with a body is none")
	}
	if c.Workers = 3; c.IsBase() {
		t.Error("three workers are a base row")
	}
}

func TestAReportKeepsTheNamesOfItsBodies(t *testing.T) {
	body := must.Get(SizedBody("1KiB"))(t)
	text := must.Get(json.Marshal([]Row{{Conditions: Conditions{Body: body}}, {}}))(t)
	var rows []Row
	if err := json.Unmarshal(text, &rows); err != nil || rows[0].Body.String() != "1KiB" || rows[1].Body != (Body{}) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestOnlyMessagesThatCarryNothingHaveTwoKindsOfIDs(t *testing.T) {
	body := must.Get(SizedBody("200B"))(t)
	if plan := kafkaPlan([]Body{{}, body}); len(plan) != 6 || plan[0].Workers != 8 || plan[4].Body != body || plan[5].Workers != 1 {
		t.Errorf("%v", plan)
	}
}
