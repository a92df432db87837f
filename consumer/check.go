package consumer

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/selectors"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/measure"
)

// check returns all faults of the policy that do not depend on the store.
func (c *Config) check() error {
	var faults []error
	fault := func(field, format string, a ...any) {
		faults = append(faults, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, a...)))
	}
	for _, check := range []func(faultFunc){
		c.checkName, c.checkIdentity, c.checkType, c.checkFormer, c.checkOwner, c.checkAuditKey, c.checkTracers, c.checkStrategy, c.checkVersion,
		c.checkOnParked, c.checkEndings, c.checkDuplicates, c.checkLimits, c.checkRetention, c.checkReplay, c.checkGeneration, c.checkProvider,
	} {
		check(fault)
	}
	return errors.Join(faults...)
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

// leastKey is the minimum length of a key in bytes. A shorter key could be guessed.
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

// checkTracers reports more than one tracer, because the span of a handler's call can have only one parent.
func (c *Config) checkTracers(fault faultFunc) {
	tracers := 0
	for _, o := range c.Observers {
		if _, traces := o.(measure.Tracer); traces {
			tracers++
		}
	}
	if tracers > 1 {
		fault("Observers", "has %d that create spans (measure.Tracer); keep one of them, because a span has one parent", tracers)
	}
}

// checkOwner reports an owner that is too long, and a missing owner if Exclusive is set.
func (c *Config) checkOwner(fault faultFunc) {
	switch {
	case len(c.Owner) > admin.MaxDerivation:
		fault("Owner", "has %d bytes, more than %d", len(c.Owner), admin.MaxDerivation)
	case c.Exclusive && c.Owner == "":
		fault("Exclusive", "is set and Owner is empty; set Owner")
	}
}

// checkProvider reports faults of Config.Provider.
func (c *Config) checkProvider(fault faultFunc) {
	p := &c.Provider
	if p.OnUnknown != ActionPark && p.OnUnknown != ActionDiscard {
		fault("Provider.OnUnknown", "is %v; it is %v or %v", p.OnUnknown, ActionPark, ActionDiscard)
	}
	switch {
	case p.Window < 0 && p.Window != WindowNever:
		fault("Provider.Window", "is %v; it is a time, or WindowAlways, or WindowNever", p.Window)
	case p.Window > 0 && p.Window <= c.Timeout:
		fault("Provider.Window", "is %v, and must be longer than Timeout, %v: a call may arrive as late as that", p.Window, c.Timeout)
	}
}

// leastKeep is the minimum retention. A shorter value was probably given in a wrong unit.
const leastKeep = time.Minute

func (c *Config) checkRetention(fault faultFunc) {
	r := &c.Retention
	check := func(field string, d, least time.Duration) {
		if d != 0 && (d < least || d > 200*365*24*time.Hour) {
			fault("Retention."+field, "is %v; it must be %v to 200 years, or 0", d, least)
		}
	}
	check("Keep", r.Keep, leastKeep)
	check("Bodies", r.Bodies, leastKeep)
	check("Delay", r.Delay, 0)
	switch {
	case r.Bodies > 0 && r.Keep > 0 && r.Bodies >= r.Keep:
		fault("Retention.Bodies", "is %v, and the identities are kept for %v only; make it shorter, or leave it out", r.Bodies, r.Keep)
	case r.IDTime > identity.Snowflake:
		fault("Retention.IDTime", "%v is not a kind of id", r.IDTime)
	case r.OnExpired != ActionPark && r.OnExpired != ActionDeadLetter && r.OnExpired != ActionHalt && r.OnExpired != ActionDiscard:
		fault("Retention.OnExpired", "%v is not an ending that is possible here", r.OnExpired)
	case r.DailyPartitions && r.IDTime == identity.NoIDTime:
		fault("Retention.DailyPartitions", "needs ids that carry their time; set IDTime")
	case r.Keep == 0 && (r.DailyPartitions || r.Delay != 0 || r.IDTime != identity.NoIDTime || r.OnExpired != ActionPark):
		fault("Retention", "is set, but without Keep all markers are kept; set Keep")
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
		fault("Fingerprint", "is FingerprintNone, and Identity is the key alone: messages with the same key cannot be distinguished, and all but the first would be dropped as duplicates; use FingerprintBody, so that they are conflicts, or name what the producer sets once for a message, or set Version")
	}
	if err := c.Filter.Validate(); err != nil {
		fault("Filter", "%v", err)
	}
	if err := c.Fingerprint.Validate(); err != nil {
		fault("Fingerprint", "%v", err)
	}
}

// checkDuplicates reports faults of ReEmitIntents and SenderWindows.
func (c *Config) checkDuplicates(fault faultFunc) {
	switch {
	case !c.ReEmitIntents && len(c.SenderWindows) > 0:
		fault("SenderWindows", "limits the age of intents that are sent again, but ReEmitIntents is not set; set it, or remove SenderWindows")
	case c.ReEmitIntents && !c.Strategy.marks():
		fault("ReEmitIntents", "is set, and with the Strategy %v no marker tells which messages are duplicates; remove it", c.Strategy)
	}
	for sender, window := range c.SenderWindows {
		if window <= 0 && window != WindowNever {
			fault("SenderWindows", "is %v of %q; it is a time, or WindowAlways, or WindowNever", window, sender)
		}
	}
}

// checkGeneration reports faults of Config.Generation, and a consumer name that looks like the name of a
// generation.
func (c *Config) checkGeneration(fault faultFunc) {
	if _, n := admin.GenerationOf(c.Name); n != 0 {
		fault("Name", "ends as the name of generation %d does; give it another name, or set Generation", n)
	}
	switch g := c.Generation; {
	case g == nil:
	case g.Number < 0:
		fault("Generation.Number", "is %d; it is 0 or more", g.Number)
	case g.Number == 0 && g.Building:
		fault("Generation.Building", "is true, but generation 0 is never built by a rebuild")
	case !c.Strategy.marks() && g.Building:
		fault("Generation.Building", "is true, and Strategy is %v, which writes no markers: after the switch it would be unknown what the rebuild has applied", c.Strategy)
	}
}

func (c *Config) checkOnParked(fault faultFunc) {
	switch {
	case c.OnParked > OnParkedBlock:
		fault("OnParked", "%v is not valid; use OnParkedSkip or OnParkedBlock", c.OnParked)
	case c.OnParked != OnParkedBlock:
	case c.Lanes == LanesNone:
		fault("OnParked", "is block, but Lanes is none, which keeps no order; use LanesKey or LanesPartition, or OnParkedSkip")
	case !c.Strategy.marks():
		fault("OnParked", "is block, and the strategy is %v, which writes no markers: a message that waits needs one; use StrategyMarker or StrategyInbox", c.Strategy)
	case c.Version != nil:
		fault("OnParked", "is block, but Version already blocks the later versions of a stream; leave OnParked out")
	}
}

// checkFormer reports settings that cannot be combined with Config.PreviousIdentity.
func (c *Config) checkFormer(fault faultFunc) {
	if c.PreviousIdentity == nil {
		return
	}
	own, former := derivationOf(c.Identity), ""
	if c.PreviousIdentity.Identity != nil {
		former = derivationOf(c.PreviousIdentity.Identity)
	}
	unprinted := c.Fingerprint == identity.FingerprintNone()
	switch {
	case c.PreviousIdentity.Identity == nil:
		fault("PreviousIdentity.Identity", "is missing; say what Identity was before, or leave PreviousIdentity out")
		return
	case !c.Strategy.marks():
		fault("PreviousIdentity", "is set and Strategy is %v, which writes no markers that another identity could be marked beside; remove it", c.Strategy)
	case c.Version != nil:
		fault("PreviousIdentity", "and Version are both set: with another identity the streams begin again, and versions would be checked twice; start a consumer with another name instead")
	case unprinted:
		fault("PreviousIdentity", "is set and Fingerprint is FingerprintNone: without one, several messages that had one former identity cannot be told from copies, and all but one would be lost; use FingerprintBody")
	case own == "" || former == "":
		fault("PreviousIdentity", "needs identities that describe their derivation; give their types a method Derivation() string, or make them of selectors with identity.By")
	case own == former:
		fault("PreviousIdentity.Identity", "is what Identity is now, %s; name what it was before, or leave PreviousIdentity out", own)
	}
	if err := c.PreviousIdentity.Identity.Validate(); err != nil {
		fault("PreviousIdentity.Identity", "%v", err)
	}
}

// checkReplay reports faults of Config.Replay.
func (c *Config) checkReplay(fault faultFunc) {
	switch r := c.Replay; {
	case r == nil:
	case r.ID < 1:
		fault("Replay.ID", "is %d; it is the replay's number in the store, 1 or more", r.ID)
	case r.Generation != c.generation():
		fault("Replay.Generation", "is %d, and the consumer works in generation %d; give both the same", r.Generation, c.generation())
	case c.ReEmitIntents:
		fault("ReEmitIntents", "is set, and in a replay most messages are duplicates, whose intents would all be sent again; remove it")
	}
}

// checkType reports faults of Config.Type.
func (c *Config) checkType(fault faultFunc) {
	if c.Type == "" {
		return
	}
	kind, err := selectors.Parse(c.Type)
	switch {
	case err != nil:
		fault("Type", "%v", err)
	case kind.Unique():
		fault("Type", "%q has another value in each message, but many messages share a type; name the place of the type, such as header:event-type or body:/type", c.Type)
	}
	if v, ok := c.versions(); ok && c.Type != "type" && v.UsesType() {
		fault("Type", "is %q, and Version names the selector type, which would change with it; name %q in Version, too", c.Type, c.Type)
	}
}

// versions returns Version.By if it was made with identity.Stream.
func (c *Config) versions() (*identity.Versions, bool) {
	if c.Version == nil {
		return nil, false
	}
	v, ok := c.Version.By.(*identity.Versions)
	return v, ok && v != nil
}

func (c *Config) checkVersion(fault faultFunc) {
	v := c.Version
	if v == nil {
		return
	}
	if v.By == nil {
		fault("Version.By", "is missing; say where stream and version are: identity.Stream(\"body:/order\").At(\"body:/version\")")
	} else if err := v.By.Validate(); err != nil {
		fault("Version.By", "%v", err)
	}
	switch {
	case v.FirstSeen && v.Start != 0:
		fault("Version.Start", "is %d, but FirstSeen begins a stream with the first version that arrives; remove one of them", v.Start)
	case !v.FirstSeen && (v.Start < 1 || v.Start > versions.Max):
		fault("Version.Start", "is %d; versions are from 1 to %d", v.Start, int64(versions.Max))
	}
	if v.Gap < time.Second || v.Gap > 365*24*time.Hour {
		fault("Version.Gap", "is %v; it must be 1s to 8760h", v.Gap)
	}
	if v.GapCap < 0 {
		fault("Version.GapCap", "is %d; it must be 1 or more, or 0 for any number", v.GapCap)
	}
	if v.Missing != ActionPark && v.Missing != ActionDeadLetter && v.Missing != ActionHalt {
		fault("Version.Missing", "%v is not an ending that is possible here", v.Missing)
	}
	if !c.Strategy.marks() {
		fault("Version", "is set, and the strategy is %v, which writes no markers: a version that waits needs one; use StrategyMarker or StrategyInbox", c.Strategy)
	}
}
