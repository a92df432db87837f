package assembly

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/measure"
)

// endingConsumer is a consumer whose run ends immediately.
type endingConsumer struct{ Consumer }

func (endingConsumer) Run(context.Context) error      { return nil }
func (endingConsumer) Counts() semel.Counts           { return semel.Counts{Deliveries: 7} }
func (endingConsumer) Ready() (bool, string)          { return true, "" }
func (endingConsumer) Alive() (bool, string)          { return true, "" }
func (endingConsumer) StoreDown() (time.Time, string) { return time.Time{}, "" }
func (endingConsumer) Load() measure.Load             { return measure.Load{} }

var errAway = fmt.Errorf("store keys: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")})

// newWaitingConsumer returns a consumer whose store fails with the given errors, one per attempt, and then
// works.
func newWaitingConsumer(t *testing.T, says ...error) (*waitingConsumer, *strings.Builder) {
	t.Helper()
	var log strings.Builder
	return &waitingConsumer{name: "billing", store: "keys", logger: slog.New(slog.NewTextHandler(&log, nil)), make: func(context.Context) (Consumer, error) {
		if len(says) == 0 {
			return endingConsumer{}, nil
		}
		err := says[0]
		says = says[1:]
		return nil, err
	}}, &log
}

func TestAConsumerWhoseKeyStoreIsUnavailableAtTheStart(t *testing.T) {
	t.Run("C10_waits_for_it_is_not_ready_and_says_it_once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, log := newWaitingConsumer(t, errAway, errAway, errAway, errAway)
			c, err := new(Assembly).orWaiting(t.Context(), w)
			if err != nil {
				t.Fatal(err)
			}
			if ready, why := c.Ready(); ready || !strings.Contains(why, "connection refused") || c.Counts().Deliveries != 0 || c.Unfinished() != nil {
				t.Errorf("ready %v, %q", ready, why)
			}
			began := time.Now()
			if since, why := c.StoreDown(); !since.Equal(began) || !strings.Contains(why, "connection refused") {
				t.Errorf("its store is down since %v: %s", since, why)
			}
			if err := c.Run(t.Context()); err != nil || time.Since(began) != 15*time.Second {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			if since, _ := c.StoreDown(); !since.IsZero() {
				t.Errorf("its store is down since %v", since)
			}
			if ready, _ := c.Ready(); !ready || c.Counts().Deliveries != 7 {
				t.Error("it is not ready")
			}
			if n := strings.Count(log.String(), "is unavailable"); n != 1 || !strings.Contains(log.String(), "the store is available") {
				t.Errorf("the outage is logged %d times:\n%s", n, log)
			}
		})
	})
	t.Run("C10_a_stop_meanwhile_is_no_failure", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, _ := newWaitingConsumer(t, errAway, errAway, errAway, errAway)
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
			defer stop()
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("J4_what_does_not_pass_ends_the_run", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			refused := errors.New("the store of the keys is volatile")
			w, _ := newWaitingConsumer(t, refused)
			if _, err := new(Assembly).orWaiting(t.Context(), w); !errors.Is(err, refused) {
				t.Error(err)
			}
			w, _ = newWaitingConsumer(t, errAway, refused)
			if err := w.Run(t.Context()); !errors.Is(err, refused) {
				t.Error(err)
			}
		})
	})
}

func TestTemporaryFailuresOfAKeyStore(t *testing.T) {
	_, away := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{closedPort(t)}, DisableCache: true})
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"a port where nobody listens": {fmt.Errorf("x: %w", away), true},
		"no answer in time":           {fmt.Errorf("x: %w", context.DeadlineExceeded), true},
		"a connection that ends":      {fmt.Errorf("x: %w", io.EOF), true},
		"a name that is not known":    {&net.DNSError{Err: "no such host", Name: "redis"}, true},
		"a certificate":               {x509.UnknownAuthorityError{}, false},
		"a policy":                    {errors.New("the store of the keys is volatile"), false},
	} {
		if got := isTransient(c.err); got != c.want {
			t.Errorf("%s: %v, %v", name, got, c.err)
		}
	}
}

// closedPort returns an address of this machine on which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
