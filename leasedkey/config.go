package leasedkey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/keystore"
)

// Config configures Keys. Consumer, Keep and Window are required.
type Config struct {
	// Consumer is the name under which keys are stored. Keys of different names are independent.
	Consumer string
	// Keep is how long a key is kept after its last change. Choose it longer than the time after
	// which a copy of a request can still arrive.
	Keep time.Duration
	// Window is how long the other side remembers an idempotency key after the first attempt. Always:
	// it never forgets. Never: it knows no keys, and unknown outcomes are never repeated.
	Window time.Duration
	// Lease is how long the key of a dead process blocks others; default one minute. The lease is
	// extended while a call runs.
	Lease time.Duration
	// Timeout ends the context of a call; default half of Lease. Timeout must be shorter than Lease.
	Timeout time.Duration
	// Ask, if not nil, asks the other side whether an attempt with an unknown outcome took effect. Do
	// calls Ask once Window has passed, with a context that ends after Timeout. A result longer than
	// keystore.MaxResult is not kept, and the Do that called Ask returns an error.
	Ask func(ctx context.Context, a Attempt) (Finding, []byte, error)
	// AllowVolatile is the reason why a store that may lose keys, and calls that are then made twice,
	// are acceptable. If AllowVolatile is empty, New refuses a store that is volatile or whose
	// durability is unknown.
	AllowVolatile string
}

// Special values of Config.Window.
const (
	Always = calls.Always
	Never  = calls.Never
)

// Finding is the answer of Config.Ask.
type Finding uint8

// The findings.
const (
	// StillUnknown: the outcome could not be found out.
	StillUnknown Finding = iota
	// Happened: the call took effect.
	Happened
	// DidNotHappen: the call had no effect and may be made.
	DidNotHappen
)

// fits reports a fault of the configuration, and sets the defaults.
func (c *Config) fits(st keystore.Store) error {
	if c.Lease == 0 {
		c.Lease = time.Minute
	}
	if c.Timeout == 0 {
		c.Timeout = c.Lease / 2
	}
	fault := func(field, format string, args ...any) error {
		return fmt.Errorf("%s "+format, append([]any{field}, args...)...)
	}
	switch {
	case st == nil:
		return errors.New("the store is nil; pass one that is open")
	case c.Consumer == "":
		return fault("Consumer", "is empty; say whose keys these are")
	case c.Window == 0:
		return fault("Window", "is not set; say for how long the other side knows an idempotency key, or Always, or Never")
	case c.Window < 0 && c.Window != Never:
		return fault("Window", "is %v; it is a time, or Always, or Never", c.Window)
	case c.Lease < time.Second:
		return fault("Lease", "is %v, and must be at least 1s", c.Lease)
	case c.Timeout < 0 || c.Timeout >= c.Lease:
		return fault("Timeout", "is %v, and must be shorter than Lease, which is %v: a call that outlives its lease can run beside a second one", c.Timeout, c.Lease)
	case c.Keep < c.Lease:
		return fault("Keep", "is %v, and must be at least Lease, which is %v; a copy that comes after it is called for again", c.Keep, c.Lease)
	}
	return c.durable(st)
}

// durable refuses a store that may lose keys, unless AllowVolatile gives a reason.
func (c *Config) durable(st keystore.Store) error {
	if c.AllowVolatile != "" {
		return nil
	}
	if d, why := st.Durable(); d > keystore.DurableExceptSeconds {
		return fmt.Errorf("the store is %v (%s), so calls may be made twice; make the store durable, or set AllowVolatile to the reason why that is acceptable", d, why)
	}
	return nil
}
