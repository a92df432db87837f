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
	// Consumer is the name under which keys are stored. Keys with different names are independent.
	Consumer string
	// Keep is how long a key is kept after its last change. Keep must be longer than the time after which a
	// request can still be repeated.
	Keep time.Duration
	// Window is how long the other system remembers an idempotency key after the first attempt. Always means that the
	// system never forgets a key. Never means that the system does not support idempotency keys, so calls with unknown
	// outcomes are never repeated.
	Window time.Duration
	// Lease is how long the key of a dead process blocks other processes; default one minute. The lease is
	// extended while a call runs.
	Lease time.Duration
	// Timeout is the time after which the context of a call ends; default half of Lease. Timeout must be
	// shorter than Lease.
	Timeout time.Duration
	// Ask, if not nil, asks the other system whether an attempt with an unknown outcome had its effect. Do calls Ask
	// after Window has passed, with a context that ends after Timeout. If the result is longer than keystore.MaxResult,
	// the result is not stored, and Do returns an error.
	Ask func(ctx context.Context, a Attempt) (Finding, []byte, error)
	// AllowVolatile is the reason why it is acceptable that the store loses keys and that calls are then made
	// twice. If AllowVolatile is empty, New rejects a store that is volatile or whose durability is unknown.
	AllowVolatile string
}

// Special values of Config.Window.
const (
	Always = calls.Always
	Never  = calls.Never
)

// Finding is the answer of Config.Ask.
type Finding uint8

const (
	// StillUnknown means that the outcome could not be determined.
	StillUnknown Finding = iota
	// Happened means that the call had its effect.
	Happened
	// DidNotHappen means that the call had no effect and may be made.
	DidNotHappen
)

// prepare sets the defaults, and returns an error if the configuration has a fault.
func (c *Config) prepare(st keystore.Store) error {
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
	return c.checkDurable(st)
}

// checkDurable returns an error if the store may lose keys and AllowVolatile gives no reason.
func (c *Config) checkDurable(st keystore.Store) error {
	if c.AllowVolatile != "" {
		return nil
	}
	if d, why := st.Durable(); d > keystore.DurableExceptSeconds {
		return fmt.Errorf("the store is %v (%s), so calls may be made twice; make the store durable, or set AllowVolatile to the reason why that is acceptable", d, why)
	}
	return nil
}
