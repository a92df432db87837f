package httpkey_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/httpkey"
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/memstore"
	"github.com/semel-go/semel/store"
)

func TestAConfigurationThatDoesNotFitIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(*httpkey.Config){
		"Name is empty":                      func(c *httpkey.Config) { c.Name = "" },
		"Name has 5000 bytes":                func(c *httpkey.Config) { c.Name = strings.Repeat("n", 5000) },
		"Caller is nil":                      func(c *httpkey.Config) { c.Caller = nil },
		"OneTenant is set, and so is Caller": func(c *httpkey.Config) { c.OneTenant = true },
		"Keep is 0s":                         func(c *httpkey.Config) { c.Keep = 0 },
		"must exceed Retries (72h0m0s)":      func(c *httpkey.Config) { c.Retries = 72 * time.Hour },
		"Timeout is -1s":                     func(c *httpkey.Config) { c.Timeout = -time.Second },
		"Wait is -1s":                        func(c *httpkey.Config) { c.Wait = -time.Second },
		"Retries is -1s":                     func(c *httpkey.Config) { c.Retries = -time.Second },
		"MaxKey is 256":                      func(c *httpkey.Config) { c.MaxKey = 256 },
		"MaxBody is -1":                      func(c *httpkey.Config) { c.MaxBody = -1 },
		"MaxAnswer is 61441":                 func(c *httpkey.Config) { c.MaxAnswer = httpkey.MostAnswer + 1 },
		"MostOpen is -1":                     func(c *httpkey.Config) { c.MostOpen = -1 },
		"MostOfCaller is -1":                 func(c *httpkey.Config) { c.MostOfCaller = -1 },
		"MostBytes is 2097151":               func(c *httpkey.Config) { c.MostBytes = 2<<20 - 1 },
		"InFlightStatus is 200":              func(c *httpkey.Config) { c.InFlightStatus = 200 },
		"MismatchStatus is 400":              func(c *httpkey.Config) { c.MismatchStatus = 400 },
		"Methods is empty":                   func(c *httpkey.Config) { c.Methods = []string{} },
		"in upper case":                      func(c *httpkey.Config) { c.Methods = []string{"post"} },
		"Pass and Methods both contain POST": func(c *httpkey.Config) { c.Pass = []string{"POST"} },
		"Optional is set":                    func(c *httpkey.Config) { c.Optional = true },
		"Problems is no beginning":           func(c *httpkey.Config) { c.Problems = "http://a b/" },
		`"set-cookie", which is never kept`:  func(c *httpkey.Config) { c.Headers = []string{"Location", "set-cookie"} },
		`"Authorization", which is never`:    func(c *httpkey.Config) { c.Headers = []string{"Authorization"} },
		"there is no rule 9":                 func(c *httpkey.Config) { c.ClientErrors = 9 },
		"InDoubt needs NewLeased":            func(c *httpkey.Config) { c.ServerErrors = httpkey.InDoubt },
		"status 999 in Statuses":             func(c *httpkey.Config) { c.Statuses = map[int]httpkey.Rule{999: httpkey.KeepAnswer} },
		"a success is always kept":           func(c *httpkey.Config) { c.Statuses = map[int]httpkey.Rule{201: httpkey.ReleaseKey} },
	} {
		t.Run(want, func(t *testing.T) {
			c := config()
			spoil(&c)
			if _, err := httpkey.New(memstore.New(), c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("it says %v", err)
			}
		})
	}
	t.Run("all faults are reported at once", func(t *testing.T) {
		_, err := httpkey.New(memstore.New(), httpkey.Config{Wait: -1, ClientErrors: 9})
		for _, want := range []string{"Name is empty", "Caller is nil", "Keep is", "Wait is", "no rule 9"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s is missing in %v", want, err)
			}
		}
	})
}

func TestJ4AStoreThatForgetsIsRefusedUnlessThatIsBearable(t *testing.T) {
	l := httpkey.LeaseConfig{Window: leasedkey.Always}
	if _, err := httpkey.NewLeased(memstore.NewKeys(), config(), l); err == nil || !strings.Contains(err.Error(), "AllowVolatile") {
		t.Errorf("it says %v", err)
	}
	for want, spoil := range map[string]func(*httpkey.Config, *httpkey.LeaseConfig){
		"Window is not set":  func(_ *httpkey.Config, l *httpkey.LeaseConfig) { l.Window = 0 },
		"shorter than Lease": func(c *httpkey.Config, _ *httpkey.LeaseConfig) { c.Timeout = time.Minute },
	} {
		c, l := config(), httpkey.LeaseConfig{Window: leasedkey.Always, AllowVolatile: "a test"}
		spoil(&c, &l)
		if _, err := httpkey.NewLeased(memstore.NewKeys(), c, l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("it says %v", err)
		}
	}
}

// plain is a store without the optional features of memstore.Store.
type plain struct {
	store.TxStore[*memstore.Tx]
}

// pooledStore is a store with a connection pool of the given size.
type pooledStore struct {
	*memstore.Store
	size int
}

func (p pooledStore) Limits() store.Limits { return store.Limits{Connections: p.size} }

// daily is a store that partitions its markers by day.
type daily struct {
	store.TxStore[*memstore.Tx]
}

func (daily) Limits() store.Limits { return store.Limits{PartitionedBy: "uuidv7"} }

func TestAStoreThatCannotIsRefused(t *testing.T) {
	if _, err := httpkey.New[*memstore.Tx](nil, config()); err == nil {
		t.Error("New accepted a nil store")
	}
	if _, err := httpkey.New[*memstore.Tx](plain{memstore.New()}, config()); !errors.Is(err, semel.ErrUnsupported) {
		t.Errorf("one without results: %v", err)
	}
	if _, err := httpkey.New[*memstore.Tx](daily{TxStore: memstore.New()}, config()); err == nil || !strings.Contains(err.Error(), "uuidv7") {
		t.Errorf("one of days: %v", err)
	}
}

func TestTrap131OpenKeysStayBelowThePool(t *testing.T) {
	for _, c := range []struct {
		size, open int
		fits       bool
	}{{1, 0, false}, {2, 0, true}, {10, 9, true}, {10, 10, false}, {10, 11, false}, {0, 1000, true}} {
		to := config()
		to.MostOpen = c.open
		_, err := httpkey.New[*memstore.Tx](pooledStore{memstore.New(), c.size}, to)
		if (err == nil) != c.fits {
			t.Errorf("%d open keys in a pool of %d: %v", c.open, c.size, err)
		}
	}
}

func TestTxFromSaysWhatIsMissing(t *testing.T) {
	if _, err := httpkey.TxFrom[*memstore.Tx](t.Context()); err == nil || !strings.Contains(err.Error(), "Guard of New") {
		t.Errorf("it says %v", err)
	}
	var err error
	s := newFixture(t, func(_ http.ResponseWriter, r *http.Request) { _, err = httpkey.TxFrom[string](r.Context()) }, nil)
	if s.post(`"k"`, ""); err == nil || !strings.Contains(err.Error(), "*memstore.Tx") {
		t.Errorf("it says %v", err)
	}
}
