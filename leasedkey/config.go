package leasedkey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/store"
)

// Config says how calls are made. Consumer, Keep and Window have to be set.
type Config struct {
	// Consumer is the name whose keys these are; those of two never meet.
	Consumer string
	// Keep is how long a key is kept after its last change. It must exceed the time
	// after which a copy can still come.
	Keep time.Duration
	// Window is for how long after the first attempt the other side knows an idempotency
	// key; Always: for ever; Never: it knows none, and no unknown outcome is repeated.
	Window time.Duration
	// Lease is how long a process that died keeps others from calling; 0 is a minute.
	// While a call runs its lease is extended.
	Lease time.Duration
	// Timeout ends the context of a call; 0 is half a lease. It must be shorter than
	// Lease.
	Timeout time.Duration
	// Ask, if not nil, finds out whether an attempt whose outcome is unknown took effect,
	// once Window has passed. It has Timeout. A result of more than store.MaxKeyResult
	// bytes is not kept; Do returns an error that says so, once.
	Ask func(ctx context.Context, a Attempt) (Finding, []byte, error)
	// AllowVolatile says why it is bearable that the store may forget keys, and calls be made
	// twice: without it a store that is volatile, or does not say, is refused.
	AllowVolatile string
}

// The ends of Config.Window.
const (
	Always = calls.Always
	Never  = calls.Never
)

// Finding is what Config.Ask found out.
type Finding uint8

// The findings.
const (
	// StillUnknown: it could not be found out.
	StillUnknown Finding = iota
	// Happened: the effect is there.
	Happened
	// DidNotHappen: there is none, and the call may be made.
	DidNotHappen
)

// fits reports what is wrong with a configuration, and sets what was left open.
func (c *Config) fits(st store.KeyStore) error {
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
		return fault("Timeout", "is %v, and must be shorter than Lease, which is %v: who is called when the lease is over is called twice at once", c.Timeout, c.Lease)
	case c.Keep < c.Lease:
		return fault("Keep", "is %v, and must be at least Lease, which is %v; a copy that comes after it is called for again", c.Keep, c.Lease)
	}
	return c.durable(st)
}

// durable refuses a store that may forget, unless somebody said why that is bearable.
func (c *Config) durable(st store.KeyStore) error {
	if c.AllowVolatile != "" {
		return nil
	}
	if d, why := st.Durable(); d > store.DurableExceptSeconds {
		return fmt.Errorf("the store is %v (%s), so that calls may be made twice; make it durable, or say in AllowVolatile why that is bearable", d, why)
	}
	return nil
}
