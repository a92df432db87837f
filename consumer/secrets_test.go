package consumer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/source"
)

// secretText is part of every body and header of the test messages. secretText must not appear in anything that
// the consumer reports.
const secretText = "4915162342"

// payment is the type that a handler decodes.
type payment struct {
	Amount struct{ Cents int8 }
	At     time.Time
}

// secretive returns a message whose values must not appear in any report of the consumer.
func secretive(id, body string) *semel.Message {
	m := message(id, strings.ReplaceAll(body, "HIDDEN", secretText))
	m.Key = []byte("key-" + secretText)
	m.Headers = append(m.Headers, semel.Header{Name: "authorization", Value: []byte("Bearer " + secretText)}, semel.Header{Name: secretText, Value: []byte("x")})
	return m
}

// telling collects everything that a consumer reports.
type telling struct {
	log
	witness
	errors []string
}

func (w *telling) String() string {
	text := w.log.String() + strings.Join(w.errors, "\n")
	for _, e := range w.events {
		text += fmt.Sprintf("%+v %v\n", e, e.Err)
	}
	return text
}

// decode is a handler that fails in all ways in which decoding can fail.
func decode(ctx context.Context, tx *memstore.Tx, m *semel.Message) error {
	switch m.Identity.ID {
	case "panic":
		var none []byte
		_ = none[len(m.Body)]
	case "unmet":
		return semel.PreconditionFailed("status")
	case "unique":
		return semel.Duplicate(errors.New("unique"))
	case "wait":
		return semel.RetryAfter(errTest, time.Hour)
	}
	if _, err := semel.JSON[payment](m); err != nil {
		return err
	}
	return add(ctx, tx, m)
}

func TestNoPayloadIsReported(t *testing.T) {
	bubble(t, "law_15_no_payload_and_no_header_is_in_a_log_an_event_or_an_error", func(t *testing.T) {
		corpus := []*semel.Message{
			secretive("fits", `{"note":"HIDDEN"}`), secretive("fits", `{"note": "HIDDEN"}`), secretive("fits", `{"note":"other HIDDEN"}`),
			secretive("syntax", `{"note":HIDDENx}`), secretive("number", `{"Amount":{"Cents":HIDDEN}}`), secretive("string", `{"Amount":"HIDDEN"}`),
			secretive("time", `{"At":"HIDDEN"}`), secretive("lone", `HIDDEN`), secretive("cut", `{"a":"HIDDEN`),
			secretive("panic", `HIDDEN`), secretive("unmet", `{}`), secretive("unique", `{}`), secretive("wait", `{}`),
			secretive("", `{"no":"HIDDEN"}`), secretive(strings.Repeat("x", 5000), `HIDDEN`),
		}
		refused := secretive("refused", `{"a":"HIDDEN","a":"HIDDEN"}`)
		told := &telling{}
		var trouble atomic.Int64
		store := watch(memstore.New(memstore.Fail(func(op string) error {
			if n := trouble.Add(1); op != "scope" && n%7 == 0 && n < 60 {
				return errors.New("the store does not answer")
			}
			return nil
		})))
		for _, identity := range []identity.Identity{identity.By("header:id"), identity.Func(func(m *semel.Message) (string, string, error) { panic(string(m.Body)) })} {
			src := watchSource(append(corpus, refused)...)
			src.pending[len(corpus)].Refused = semel.ReasonMalformed
			failures := 0
			src.onFetch = func(context.Context, source.Bound) error {
				if failures++; failures == 1 {
					return errors.New("the source does not answer")
				}
				return nil
			}
			src.onSettle = func(context.Context, []source.Settlement) ([]int, error) {
				if failures++; failures == 4 {
					return nil, errors.New("the broker does not answer")
				}
				return nil, nil
			}
			c := config(src)
			c.Identity, c.Logger, c.Observers, c.Retry.MaxAttempts = identity, told.logger(), []semel.Observer{&told.witness}, 2
			counts := runs(t, store, decode, c)
			if counts.Parked < 3 {
				t.Errorf("the messages did not fail: %+v", counts)
			}
		}
		halting := config(newListSource(secretive("number", `{"Amount":{"Cents":HIDDEN}}`)))
		halting.Logger, halting.Observers, halting.Retry.OnExhausted = told.logger(), []semel.Observer{&told.witness}, consumer.ActionHalt
		err := mustNew(t, memstore.New(), decode, halting).Run(t.Context())
		if !errors.Is(err, semel.ErrHalted) {
			t.Fatal(err)
		}
		told.errors = append(told.errors, err.Error())
		for _, r := range rows(t, store.Store) {
			told.errors = append(told.errors, r.FirstError, r.LastError, r.Key.ID, string(r.Reason))
		}
		text := told.String()
		for _, line := range strings.Split(text, "\n") {
			if strings.Contains(line, secretText) {
				t.Errorf("told: %.300s", line)
			}
		}
		if !strings.Contains(text, "parked") || !strings.Contains(text, "Cents") {
			t.Error("the log is empty")
		}
	})
	bubble(t, "trap_85_an_id_with_control_characters_forges_no_line_of_the_log", func(t *testing.T) {
		text := &log{}
		id := "1\n2026-01-01 level=ERROR msg=forged\r\x1b[31m\x00"
		c := config(newListSource(message(id, `{}`)))
		c.Logger, c.Retry.OnExhausted = text.logger(), consumer.ActionHalt
		err := mustNew(t, memstore.New(), func(context.Context, *memstore.Tx, *semel.Message) error { return semel.Permanent(errTest) }, c).Run(t.Context())
		if err == nil || strings.ContainsAny(err.Error(), "\n\r\x1b\x00") {
			t.Errorf("the error is %q", err)
		}
		for _, line := range strings.Split(strings.TrimSpace(text.String()), "\n") {
			if !strings.HasPrefix(line, "time=") || strings.ContainsAny(line, "\r\x1b\x00") {
				t.Errorf("a line of the log is %q", line)
			}
		}
		if !strings.Contains(text.String(), "forged") {
			t.Errorf("the id is not in the log: %s", text)
		}
	})
}
