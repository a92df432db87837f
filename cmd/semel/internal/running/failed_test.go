package running

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/semel-go/semel"
)

// timedConsumer is a consumer whose run ends after a given time or when ctx ends.
type timedConsumer struct {
	after time.Duration
	err   error
}

func (e timedConsumer) Run(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(e.after):
		return e.err
	}
}
func (timedConsumer) Counts() semel.Counts           { return semel.Counts{} }
func (timedConsumer) Unfinished() []semel.Unfinished { return nil }

func TestAFailedConsumerIsLogged(t *testing.T) {
	t.Run("at_once_and_once_a_minute_while_others_run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var said bytes.Buffer
			all := map[string]Consumer{"billing": timedConsumer{time.Second, errors.New("no table")}, "stock": timedConsumer{10*time.Minute + 30*time.Second, nil}}
			if _, err := All(t.Context(), all, slog.New(slog.NewTextHandler(&said, nil)), nil); err == nil {
				t.Error("no error")
			}
			<-time.After(time.Hour)
			if n := strings.Count(said.String(), "level=ERROR"); n != 11 || strings.Count(said.String(), `consumer=billing error="consumer billing: no table"`) != n {
				t.Errorf("%d lines:\n%s", n, said.String())
			}
		})
	})
	for exits, want := range map[bool]time.Duration{true: time.Second, false: time.Hour} {
		t.Run(map[bool]string{true: "the_others_are_drained_with_on_failure_exit", false: "the_others_go_on_with_on_failure_continue"}[exits], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				all := map[string]Consumer{"billing": timedConsumer{time.Second, errors.New("no table")}, "stock": timedConsumer{time.Hour, nil}}
				_, err := All(t.Context(), all, slog.New(slog.DiscardHandler), func(name string) bool { return exits && name == "billing" })
				if took := time.Since(began); took != want || err == nil || errors.Is(err, context.Canceled) {
					t.Errorf("%v after %v, want an error after %v", err, took, want)
				}
			})
		})
	}
	t.Run("not_one_that_ended_well_or_was_stopped", func(t *testing.T) {
		var said bytes.Buffer
		all := map[string]Consumer{"billing": timedConsumer{0, nil}, "stock": timedConsumer{0, context.Canceled}, "orders": timedConsumer{0, semel.ErrUnfinished}}
		_, _ = All(t.Context(), all, slog.New(slog.NewTextHandler(&said, nil)), nil)
		if said.Len() > 0 {
			t.Error(said.String())
		}
	})
}
