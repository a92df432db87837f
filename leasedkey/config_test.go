package leasedkey_test

import (
	"strings"
	"testing"
	"time"

	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/leasedkey"
	"github.com/semel-go/semel/memstore"
)

func TestAConfigurationThatDoesNotFitIsRefused(t *testing.T) {
	for want, spoil := range map[string]func(*leasedkey.Config){
		"Consumer is empty":             func(c *leasedkey.Config) { c.Consumer = "" },
		"Window is not set":             func(c *leasedkey.Config) { c.Window = 0 },
		"Window is -2ns":                func(c *leasedkey.Config) { c.Window = -2 },
		"Lease is 1ms":                  func(c *leasedkey.Config) { c.Lease = time.Millisecond },
		"must be shorter than Lease":    func(c *leasedkey.Config) { c.Timeout = time.Minute },
		"Timeout is -1s":                func(c *leasedkey.Config) { c.Timeout = -time.Second },
		"Keep is 0s":                    func(c *leasedkey.Config) { c.Keep = 0 },
		"keys are in the memory of the": func(c *leasedkey.Config) { c.AllowVolatile = "" },
	} {
		t.Run(want, func(t *testing.T) {
			c := config()
			spoil(&c)
			if _, err := leasedkey.New(memstore.NewKeys(), c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("it says %v", err)
			}
		})
	}
	if _, err := leasedkey.New(nil, config()); err == nil {
		t.Error("New accepted a nil store")
	}
}

// says is a key store that reports a given durability.
type says struct {
	keystore.Store
	d keystore.Durability
}

func (s says) Durable() (keystore.Durability, string) { return s.d, "it says so" }

func TestJ4AStoreThatForgetsIsRefusedUnlessThatIsBearable(t *testing.T) {
	for d, refused := range map[keystore.Durability]bool{
		keystore.Durable: false, keystore.DurableExceptSeconds: false, keystore.Volatile: true, keystore.DurabilityUnknown: true,
	} {
		c := config()
		c.AllowVolatile = ""
		if _, err := leasedkey.New(says{memstore.NewKeys(), d}, c); (err != nil) != refused {
			t.Errorf("one that is %v: %v", d, err)
		}
		c.AllowVolatile = "mails may come twice"
		if _, err := leasedkey.New(says{memstore.NewKeys(), d}, c); err != nil {
			t.Errorf("a store that is %v, with AllowVolatile: %v", d, err)
		}
	}
}
