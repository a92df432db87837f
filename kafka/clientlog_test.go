package kafka

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestAWarningOfTheClientIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		var once warnings
		log := logger{slog.New(slog.NewTextHandler(&text, nil)), &once}
		for began := time.Now(); time.Since(began) < 3*time.Minute; <-time.After(200 * time.Millisecond) {
			log.Log(kgo.LogLevelWarn, "unable to open connection to broker", "addr", "a:1", "broker", "seed_0", "err", io.EOF)
			log.Log(kgo.LogLevelWarn, "unable to open connection to broker", "addr", "b:1", "broker", "seed_1", "err", io.EOF)
		}
		log.Log(kgo.LogLevelWarn, "group session ended")
		if got := strings.Count(text.String(), "\n"); got != 2*3+1 {
			t.Errorf("%d lines, want 7:\n%s", got, text.String())
		}
		if got := strings.Count(text.String(), "broker=seed_0 err=EOF again=299"); got != 2 {
			t.Errorf("%d lines say how often, want 2:\n%s", got, text.String())
		}
	})
}

func TestBrokersThatCannotBeReachedAreOneErrorWithOneCause(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"refused": {&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}, "dial tcp: connection refused"},
		"other":   {errors.New("x509: certificate signed by unknown authority"), "unable to dial: x509: certificate signed by unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := New(Config{Brokers: []string{"a:1", "b:1"}, Topics: []string{"payments"}, Group: "g", Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			s.brokers.dial = func(context.Context, string, string) (net.Conn, error) { return nil, c.err }
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err = s.join(ctx)
			if closed := s.Close(t.Context()); closed != nil {
				t.Error(closed)
			}
			if !errors.Is(err, c.err) {
				t.Fatalf("%v is not in %v", c.err, err)
			}
			if text := err.Error(); strings.Count(text, "none of the brokers") != 1 || !strings.HasSuffix(text, "wants them: "+c.want) || strings.Contains(text, "\n") {
				t.Errorf("the error is %q", text)
			}
		})
	}
}
