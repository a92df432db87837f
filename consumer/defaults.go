package consumer

import (
	"log/slog"
	"time"

	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/loglimit"
	"github.com/semel-go/semel/internal/versions"
)

const (
	defaultWorkers          = 8
	defaultTimeout          = 30 * time.Second
	defaultBatchMaxSize     = 500
	defaultBatchMaxTime     = 50 * time.Millisecond
	defaultMaxInMemoryWait  = 10 * time.Second
	defaultMaxMessages      = 10000
	defaultMaxBytes         = 64 << 20
	defaultMaxBody          = 16 << 20
	defaultDrain            = 20 * time.Second
	defaultMaxAttempts      = 10
	defaultInitialDelay     = time.Second
	defaultCommitTimeout    = 30 * time.Second
	defaultLease            = 30 * time.Second
	defaultPoll             = time.Second
	defaultMaxCrashes       = 3
	defaultSerialAfter      = 20
	defaultBreakerThreshold = 20
	// Defaults of RetryBudget.
	defaultRetriesPerSecond = 10
	defaultRetriesPercent   = 10
)

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Defaults returns a Config with all default values. Required fields are empty. Fingerprint and Version are
// empty too, because their defaults depend on other fields.
func Defaults() Config {
	var c Config
	c.setLimits()
	c.Provider.Window = defaultWindow
	return c
}

func (c *Config) defaults() {
	c.setLimits()
	if c.Version != nil {
		c.Version = c.Version.defaults()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Logger = slog.New(loglimit.New(c.Logger.Handler()))
	if c.Fingerprint == nil {
		c.Fingerprint = identity.FingerprintBody()
		if !c.Strategy.marks() {
			c.Fingerprint = identity.FingerprintNone()
		}
	}
}

// setLimits sets each limit that is 0 to its default value.
func (c *Config) setLimits() {
	setDefault(&c.Workers, defaultWorkers)
	setDefault(&c.Timeout, defaultTimeout)
	setDefault(&c.Batch.MaxSize, defaultBatchMaxSize)
	setDefault(&c.Batch.MaxTime, defaultBatchMaxTime)
	setDefault(&c.MaxInMemoryWait, defaultMaxInMemoryWait)
	setDefault(&c.MaxUnacked.Messages, defaultMaxMessages)
	setDefault(&c.MaxUnacked.Bytes, defaultMaxBytes)
	setDefault(&c.MaxBody, defaultMaxBody)
	setDefault(&c.Drain, defaultDrain)
	setDefault(&c.Retry.MaxAttempts, defaultMaxAttempts)
	setDefault(&c.Retry.InitialDelay, min(defaultInitialDelay, c.MaxInMemoryWait))
	setDefault(&c.Retry.MaxDelay, c.MaxInMemoryWait)
	setDefault(&c.Retry.Budget.PerSecond, defaultRetriesPerSecond)
	setDefault(&c.Retry.Budget.Percent, defaultRetriesPercent)
	setDefault(&c.Retry.SerialAfter, defaultSerialAfter)
	setDefault(&c.CommitTimeout, defaultCommitTimeout)
	setDefault(&c.Inbox.Lease, defaultLease)
	setDefault(&c.Inbox.Poll, defaultPoll)
	setDefault(&c.Inbox.MaxCrashes, defaultMaxCrashes)
}

func (v *VersionPolicy) defaults() *VersionPolicy {
	own := *v
	setDefault(&own.Gap, versions.DefaultGap)
	if !own.FirstSeen {
		setDefault(&own.Start, 1)
	}
	return &own
}

// breakerThreshold returns the number of permanent failures that opens the breaker, or 0 if the breaker never
// opens.
func (r *RetryPolicy) breakerThreshold() int {
	switch {
	case r.DisableBreaker:
		return 0
	case r.BreakerThreshold > 0:
		return r.BreakerThreshold
	}
	return defaultBreakerThreshold
}
