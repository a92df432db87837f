package consumer

import (
	"log/slog"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/loglimit"
	"github.com/semel-go/semel/measure"
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
	// Of a RetryBudget.
	defaultRetriesPerSecond = 10
	defaultRetriesPercent   = 10
)

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Defaults returns a Config in which every field that has a default is set to it. It lacks what
// is required, and what depends on other fields: Fingerprint and Version.
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

// setLimits sets each limit that is 0 to its default.
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

type faultFunc func(field, format string, a ...any)

func (c *Config) checkName(fault faultFunc) {
	switch {
	case c.Name == "":
		fault("Name", "is empty; the name scopes every record of the consumer, give it one that stays")
	case len(c.Name) > 255 || !utf8.ValidString(c.Name):
		fault("Name", "must be at most 255 bytes of UTF-8")
	}
	for _, r := range c.Name {
		if !unicode.IsPrint(r) {
			fault("Name", "has the unprintable character %U; leave it out", r)
			return
		}
	}
}

func (c *Config) checkIdentity(fault faultFunc) {
	if c.Identity == nil {
		if c.Strategy.marks() {
			fault("Identity", "is missing; say where the producer's id is: identity.CloudEvents(), identity.By(\"header:message-id\")")
		}
	} else if err := c.Identity.Validate(); err != nil {
		fault("Identity", "%v", err)
	}
	if of, is := c.Identity.(*identity.Selected); is && of != nil && of.KeyAlone() && c.Strategy.marks() && c.Version == nil && c.Fingerprint == identity.FingerprintNone() {
		fault("Fingerprint", "is FingerprintNone, and Identity is the key alone: messages of one key are told apart by nothing, and all but the first would be dropped as duplicates; use FingerprintBody, so that they are conflicts, or name what the producer sets once for a message, or set Version")
	}
	if err := c.Filter.Validate(); err != nil {
		fault("Filter", "%v", err)
	}
	if err := c.Fingerprint.Validate(); err != nil {
		fault("Fingerprint", "%v", err)
	}
}

func (c *Config) checkStrategy(fault faultFunc) {
	switch {
	case c.Strategy > StrategyInbox:
		fault("Strategy", "%v is not a strategy", c.Strategy)
	case c.Strategy == StrategyNatural && c.NaturalReason == "":
		fault("NaturalReason", "is empty; without a marker every late copy has its effect again: say why that does no harm (\"order: irrelevant\"), or use StrategyMarker")
	case c.Strategy != StrategyNatural && c.NaturalReason != "":
		fault("NaturalReason", "is set but the strategy is not StrategyNatural; remove one")
	}
}

func (c *Config) checkEndings(fault faultFunc) {
	check := func(field string, then Action, allowed ...Action) {
		for _, a := range allowed {
			if then == a {
				return
			}
		}
		fault(field, "%v is not an ending that is possible here", then)
	}
	switch {
	case c.OnFiltered > OnFilteredDeadLetter:
		fault("OnFiltered", "%v is not one of OnFilteredSkip, OnFilteredPark and OnFilteredDeadLetter", c.OnFiltered)
	case c.OnFiltered != OnFilteredSkip && c.Filter.takesAll():
		fault("OnFiltered", "says what becomes of messages that Filter leaves out, and Filter takes all; set Filter, or remove it")
	}
	check("OnConflict", c.OnConflict, ActionPark, ActionDeadLetter, ActionHalt, ActionKeepFirst)
	check("OnBadIdentity", c.OnBadIdentity, ActionPark, ActionDeadLetter, ActionHalt)
	check("OnPrecondition", c.OnPrecondition, ActionPark, ActionDeadLetter, ActionDiscard, ActionRetry)
	check("Retry.OnExhausted", c.Retry.OnExhausted, ActionPark, ActionDeadLetter, ActionHalt)
	if c.Lanes > LanesKey {
		fault("Lanes", "%v is not a lane mode; use LanesPartition, LanesKey or LanesNone", c.Lanes)
	}
}

// deadLetters reports whether a message may end in the dead letters.
func (c *Config) deadLetters() bool {
	return c.OnFiltered == OnFilteredDeadLetter || c.Retention.OnExpired == ActionDeadLetter || c.Version != nil && c.Version.Missing == ActionDeadLetter || slices.Contains([]Action{c.OnConflict, c.OnBadIdentity, c.OnPrecondition, c.Retry.OnExhausted}, ActionDeadLetter)
}

// leastKey is how many bytes a key has at least: with fewer it could be guessed.
const leastKey = 32

func (c *Config) checkAuditKey(fault faultFunc) {
	if n := len(c.AuditKey); n > 0 && n < leastKey {
		fault("AuditKey", "a key of %d bytes could be guessed; give %d or more, at random", n, leastKey)
	}
}

func (c *Config) checkLimits(fault faultFunc) {
	between := func(field string, n, least, most int64) {
		if n < least || n > most {
			fault(field, "is %d; it must be %d to %d", n, least, most)
		}
	}
	within := func(field string, d, least, most time.Duration) {
		if d < least || d > most {
			fault(field, "is %v; it must be %v to %v", d, least, most)
		}
	}
	between("Workers", int64(c.Workers), 1, 1024)
	between("Batch.MaxSize", int64(c.Batch.MaxSize), 1, 10000)
	between("MaxUnacked.Messages", int64(c.MaxUnacked.Messages), 1, 1_000_000)
	between("MaxUnacked.Bytes", c.MaxUnacked.Bytes, 1, 1<<40)
	between("MaxBody", c.MaxBody, delivery.KeptOfLargest, 1<<30)
	between("Retry.MaxAttempts", int64(c.Retry.MaxAttempts), 1, 1_000_000)
	between("Retry.Budget.PerSecond", int64(c.Retry.Budget.PerSecond), 1, 1_000_000)
	between("Retry.Budget.Percent", int64(c.Retry.Budget.Percent), 1, 1000)
	between("Retry.SerialAfter", int64(c.Retry.SerialAfter), 1, 1_000_000)
	between("Retry.BreakerThreshold", int64(c.Retry.BreakerThreshold), 0, 1_000_000)
	if c.Retry.DisableBreaker && c.Retry.BreakerThreshold > 0 {
		fault("Retry.BreakerThreshold", "is set beside Retry.DisableBreaker; remove one of them")
	}
	within("Timeout", c.Timeout, time.Millisecond, 24*time.Hour)
	within("Batch.MaxTime", c.Batch.MaxTime, time.Microsecond, time.Hour)
	within("MaxInMemoryWait", c.MaxInMemoryWait, time.Millisecond, time.Hour)
	within("Drain", c.Drain, time.Millisecond, time.Hour)
	within("CommitTimeout", c.CommitTimeout, 10*time.Millisecond, time.Hour)
	within("Retry.InitialDelay", c.Retry.InitialDelay, time.Microsecond, time.Hour)
	within("Retry.MaxDelay", c.Retry.MaxDelay, 0, 365*24*time.Hour)
	within("Inbox.Lease", c.Inbox.Lease, time.Second, time.Hour)
	within("Inbox.Poll", c.Inbox.Poll, 10*time.Millisecond, time.Minute)
	between("Inbox.MaxCrashes", int64(c.Inbox.MaxCrashes), 1, 100)
	if c.AckOnReceipt && c.Strategy != StrategyInbox {
		fault("AckOnReceipt", "is set, and the strategy is %v, which stores no message before its effect; use StrategyInbox", c.Strategy)
	}
	within("IdleExit", c.IdleExit, 0, 24*time.Hour)
	if c.Retry.MaxDelay < c.Retry.InitialDelay {
		fault("Retry.MaxDelay", "is %v, shorter than Retry.InitialDelay, %v", c.Retry.MaxDelay, c.Retry.InitialDelay)
	}
}

// checkTracers refuses several: what a handler calls has one span as its parent.
func (c *Config) checkTracers(fault faultFunc) {
	tracers := 0
	for _, o := range c.Observers {
		if _, traces := o.(measure.Tracer); traces {
			tracers++
		}
	}
	if tracers > 1 {
		fault("Observers", "has %d that make spans (measure.Tracer); what a handler calls has one parent, keep one of them", tracers)
	}
}
