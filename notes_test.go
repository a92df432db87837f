package semel_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/memstore"
)

func TestAStormOfOneKindDoesNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var messages []*semel.Message
		for i := range 200 {
			messages = append(messages, message(fmt.Sprint("bad ", i), `{}`))
		}
		c := config(newListSource(messages...))
		c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		observer := &counter{}
		c.Observers = []semel.Observer{observer}
		if _, err := consume(t, memstore.New(), permanentlyBad, c); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "msg=parked"); n != 10 {
			t.Errorf("%d parked messages in the log, want 10", n)
		}
		if !strings.Contains(log.String(), "not logged for a minute") {
			t.Error("the log does not say that more follow")
		}
		if observer.parked != 200 {
			t.Errorf("observers heard %d, want 200", observer.parked)
		}
	})
}

type counter struct{ parked int }

func (c *counter) Observe(e semel.Event) {
	if e.Kind == semel.EventParked {
		c.parked += e.Messages
	}
}

func permanentlyBad(context.Context, *memstore.Tx, *semel.Message) error {
	return semel.Permanent(errors.New("no"))
}
