package consumer

import (
	"log/slog"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/loglimit"
)

// The defaults of a Config.
const (
	DefaultWorkers       = 8
	DefaultTimeout       = 30 * time.Second
	DefaultBatchMost     = 500
	DefaultBatchTime     = 50 * time.Millisecond
	DefaultHold          = 10 * time.Second
	DefaultMaxMessages   = 10000
	DefaultMaxBytes      = 64 << 20
	DefaultMaxBody       = 16 << 20
	DefaultDrain         = 20 * time.Second
	DefaultAttempts      = 10
	DefaultRetryFirst    = time.Second
	defaultCommitTimeout = 30 * time.Second
	DefaultLease         = 30 * time.Second
	DefaultPoll          = time.Second
	DefaultStarts        = 3
	DefaultSerialAfter   = 20
	defaultHaltAfter     = 20
	// Of a RetryBudget.
	DefaultRetriesPerSecond = 10
	DefaultRetriesPercent   = 10
)

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func (c *Config) defaults() {
	setDefault(&c.Workers, DefaultWorkers)
	setDefault(&c.Timeout, DefaultTimeout)
	setDefault(&c.Batch.Most, DefaultBatchMost)
	setDefault(&c.Batch.Time, DefaultBatchTime)
	setDefault(&c.Hold, DefaultHold)
	setDefault(&c.MaxUnsettled.Messages, DefaultMaxMessages)
	setDefault(&c.MaxUnsettled.Bytes, DefaultMaxBytes)
	setDefault(&c.MaxBody, DefaultMaxBody)
	setDefault(&c.Drain, DefaultDrain)
	setDefault(&c.Retry.Attempts, DefaultAttempts)
	setDefault(&c.Retry.First, min(DefaultRetryFirst, c.Hold))
	setDefault(&c.Retry.Most, c.Hold)
	setDefault(&c.Retry.Budget.PerSecond, DefaultRetriesPerSecond)
	setDefault(&c.Retry.Budget.Percent, DefaultRetriesPercent)
	setDefault(&c.Retry.SerialAfter, DefaultSerialAfter)
	setDefault(&c.CommitTimeout, defaultCommitTimeout)
	setDefault(&c.Inbox.Lease, DefaultLease)
	setDefault(&c.Inbox.Poll, DefaultPoll)
	setDefault(&c.Inbox.Starts, DefaultStarts)
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
	if err := c.Only.Validate(); err != nil {
		fault("Only", "%v", err)
	}
	if err := c.Fingerprint.Validate(); err != nil {
		fault("Fingerprint", "%v", err)
	}
}

func (c *Config) checkStrategy(fault faultFunc) {
	switch {
	case c.Strategy > StrategyInbox:
		fault("Strategy", "%v is not a strategy", c.Strategy)
	case c.Strategy == StrategyNatural && c.NaturalBecause == "":
		fault("NaturalBecause", "is empty; without a marker every late copy has its effect again: say why that does no harm (\"order: irrelevant\"), or use StrategyMarker")
	case c.Strategy != StrategyNatural && c.NaturalBecause != "":
		fault("NaturalBecause", "is set but the strategy is not StrategyNatural; remove one")
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
	case c.Otherwise > OtherwiseDeadLetter:
		fault("Otherwise", "%v is not one of OtherwiseSkip, OtherwisePark and OtherwiseDeadLetter", c.Otherwise)
	case c.Otherwise != OtherwiseSkip && c.Only.all():
		fault("Otherwise", "says what becomes of messages that Only leaves out, and Only takes all; set Only, or remove it")
	}
	check("OnConflict", c.OnConflict, ActionPark, ActionDeadLetter, ActionHalt, ActionKeepFirst)
	check("OnBadIdentity", c.OnBadIdentity, ActionPark, ActionDeadLetter, ActionHalt)
	check("OnUnmet", c.OnUnmet, ActionPark, ActionDeadLetter, ActionDiscard, ActionRetry)
	check("Retry.Then", c.Retry.Then, ActionPark, ActionDeadLetter, ActionHalt)
	if c.Lanes > LanesKey {
		fault("Lanes", "%v is not a lane mode; use LanesPartition, LanesKey or LanesNone", c.Lanes)
	}
}

// deadLetters reports whether a message may end in the dead letters.
func (c *Config) deadLetters() bool {
	return c.Otherwise == OtherwiseDeadLetter || c.Retention.OnOld == ActionDeadLetter || c.Version != nil && c.Version.Missing == ActionDeadLetter || slices.Contains([]Action{c.OnConflict, c.OnBadIdentity, c.OnUnmet, c.Retry.Then}, ActionDeadLetter)
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
	between("Batch.Most", int64(c.Batch.Most), 1, 10000)
	between("MaxUnsettled.Messages", int64(c.MaxUnsettled.Messages), 1, 1_000_000)
	between("MaxUnsettled.Bytes", c.MaxUnsettled.Bytes, 1, 1<<40)
	between("MaxBody", c.MaxBody, keptOfLargest, 1<<30)
	between("Retry.Attempts", int64(c.Retry.Attempts), 1, 1_000_000)
	between("Retry.Budget.PerSecond", int64(c.Retry.Budget.PerSecond), 1, 1_000_000)
	between("Retry.Budget.Percent", int64(c.Retry.Budget.Percent), 1, 1000)
	between("Retry.SerialAfter", int64(c.Retry.SerialAfter), 1, 1_000_000)
	between("Retry.HaltAfter", int64(c.Retry.HaltAfter), 0, 1_000_000)
	if c.Retry.NeverHalt && c.Retry.HaltAfter > 0 {
		fault("Retry.HaltAfter", "is set beside Retry.NeverHalt; remove one of them")
	}
	within("Timeout", c.Timeout, time.Millisecond, 24*time.Hour)
	within("Batch.Time", c.Batch.Time, time.Microsecond, time.Hour)
	within("Hold", c.Hold, time.Millisecond, time.Hour)
	within("Drain", c.Drain, time.Millisecond, time.Hour)
	within("CommitTimeout", c.CommitTimeout, 10*time.Millisecond, time.Hour)
	within("Retry.First", c.Retry.First, time.Microsecond, time.Hour)
	within("Retry.Most", c.Retry.Most, 0, 365*24*time.Hour)
	within("Inbox.Lease", c.Inbox.Lease, time.Second, time.Hour)
	within("Inbox.Poll", c.Inbox.Poll, 10*time.Millisecond, time.Minute)
	between("Inbox.Starts", int64(c.Inbox.Starts), 1, 100)
	switch {
	case c.Settle > SettleAfterReceipt:
		fault("Settle", "%v is not one of SettleAfterEffect and SettleAfterReceipt", c.Settle)
	case c.Settle == SettleAfterReceipt && c.Strategy != StrategyInbox:
		fault("Settle", "is %v, and the strategy is %v, which receives nothing; use StrategyInbox", c.Settle, c.Strategy)
	}
	within("IdleExit", c.IdleExit, 0, 24*time.Hour)
	if c.Retry.Most < c.Retry.First {
		fault("Retry.Most", "is %v, shorter than Retry.First, %v", c.Retry.Most, c.Retry.First)
	}
}
