package kafka

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

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
