package consumer

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/semel-go/semel/consumer/internal/delivery"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/selectors"
	"github.com/semel-go/semel/internal/versions"
	"github.com/semel-go/semel/measure"
)

// The calls of faultList.addIf in this file and in check_way.go are the table of the rules about settings. A policy is
// checked by the same table.

// check returns all faults of the policy that do not depend on the store.
func (c *Config) check(n needs) error {
	var f faultList
	c.checkNames(&f)
	c.checkLimits(&f)
	c.checkIdentity(&f)
	c.checkPrevious(&f)
	c.checkStrategy(&f)
	c.checkEndings(&f)
	c.checkVersion(&f)
	c.checkRetention(&f)
	c.checkRuns(&f)
	c.checkMechanism(n, &f)
	c.checkCanary(n.mechanism, &f)
	c.checkCalls(n.mechanism, &f)
	c.checkSteps(n.steps, &f)
	return errors.Join(f...)
}

// leastKey is the minimum length of a key in bytes. A shorter key could be guessed.
const leastKey = 32

func (c *Config) checkNames(f *faultList) {
	at := strings.IndexFunc(c.Name, func(r rune) bool { return !unicode.IsPrint(r) })
	unprintable, _ := utf8.DecodeRuneInString(c.Name[max(at, 0):])
	_, generation := admin.GenerationOf(c.Name)
	tracers := 0
	for _, o := range c.Observers {
		if _, traces := o.(measure.Tracer); traces {
			tracers++
		}
	}
	f.addIf(c.Name == "", "Name", "is empty; the name scopes every record of the consumer, give it one that stays")
	f.addIf(len(c.Name) > 255 || !utf8.ValidString(c.Name), "Name", "must be at most 255 bytes of UTF-8")
	f.addIf(at >= 0, "Name", "has the unprintable character %U; leave it out", unprintable)
	f.addIf(generation != 0, "Name", "ends as the name of generation %d does; give it another name, or set Generation", generation)
	f.addIf(len(c.Owner) > admin.MaxDerivation, "Owner", "has %d bytes, more than %d", len(c.Owner), admin.MaxDerivation)
	f.addIf(c.Exclusive && c.Owner == "", "Exclusive Owner", "is set and Owner is empty, so this service cannot be distinguished from another; set Owner, or remove it")
	f.addIf(len(c.AuditKey) > 0 && len(c.AuditKey) < leastKey, "AuditKey", "a key of %d bytes could be guessed; give %d or more, at random", len(c.AuditKey), leastKey)
	f.addIf(tracers > 1, "Observers", "has %d that create spans (measure.Tracer); keep one of them, because a span has one parent", tracers)
}

func (c *Config) checkIdentity(f *faultList) {
	marks := c.Strategy.marks()
	kind, err := selectors.Parse(c.Type)
	if c.Type != "" {
		switch {
		case f.addIf(err != nil, "Type", "%v", err):
		case f.addIf(kind.Unique(), "Type", "%q has another value in each message, but many messages share a type; name the place of the type, such as header:event-type or body:/type", c.Type):
		case f.addIf(c.Type != "type" && c.usesType(), "Type Version", "Version uses the selector type, whose value this setting would change; name %q in Version, too", c.Type):
		}
	}
	if c.Identity != nil {
		f.addError("Identity Strategy", c.Identity.Validate())
	}
	f.addError("Filter", c.Filter.Validate())
	f.addError("Fingerprint Strategy", c.Fingerprint.Validate())
	of, is := c.Identity.(*identity.Selected)
	keyAlone := is && of != nil && of.KeyAlone()
	f.addIf(c.Identity == nil && marks, "Identity Strategy", `it is missing, so copies of a message cannot be recognised; name a value that the producer sets once for each message, as identity.CloudEvents() or identity.By("header:message-id")`)
	f.addIf(keyAlone && marks && c.Version == nil && c.ignoresContent(), "Fingerprint Identity Strategy Version", "messages with the same key could not be distinguished: all except the first would be dropped as duplicates; write Fingerprint: identity.FingerprintBody(), so that they are conflicts; or name a value that the producer sets once for each message, or set Version")
}

// ignoresContent reports whether the contents of messages are not compared.
func (c *Config) ignoresContent() bool { return c.Fingerprint == identity.FingerprintNone() }

// usesType reports whether Version finds the stream or the version of a message by the selector `type`.
func (c *Config) usesType() bool {
	if c.Version == nil {
		return false
	}
	v, is := c.Version.By.(*identity.Versions)
	return is && v != nil && v.UsesType()
}

func (c *Config) checkPrevious(f *faultList) {
	p := c.PreviousIdentity
	if p == nil {
		return
	}
	if p.Identity == nil {
		f.addIf(true, "PreviousIdentity.Identity", "is missing; say what Identity was before, or leave PreviousIdentity out")
		return
	}
	own, former := derivationOf(c.Identity), derivationOf(p.Identity)
	const reads = "PreviousIdentity Identity Strategy Fingerprint Version"
	f.addError(reads, p.Identity.Validate())
	switch {
	case f.addIf(!c.Strategy.marks(), reads, "is set, but this strategy writes no markers, so there is nothing under another identity; remove it"):
	case f.addIf(c.Version != nil, reads, "PreviousIdentity and Version are both set: the streams of another identity start again, so versions would be checked twice; remove one of them; a consumer with another name can continue where this one ended"):
	case f.addIf(c.ignoresContent(), reads, "without a fingerprint, several messages with the same previous identity cannot be distinguished from copies, and all but one would be lost; write Fingerprint: identity.FingerprintBody()"):
	case f.addIf(own == "" || former == "", reads, "needs identities that describe their derivation; give their types a method Derivation() string, or make them of selectors with identity.By"):
	case f.addIf(own == former, reads, "it is what Identity is now; write the previous identity, or remove it"):
	}
}

func (c *Config) checkStrategy(f *faultList) {
	natural, marks, blocks := c.Strategy == StrategyNatural, c.Strategy.marks(), c.OnParked == OnParkedBlock
	f.addIf(c.Strategy > StrategyInbox, "Strategy", "%v is not a strategy", c.Strategy)
	f.addIf(natural && c.NaturalReason == "", "NaturalReason Strategy", `is empty; without a marker every late copy has its effect again: say why that does no harm ("order: irrelevant"), or use StrategyMarker`)
	f.addIf(!natural && c.NaturalReason != "", "NaturalReason Strategy", "is set but the strategy is not StrategyNatural; remove one")
	f.addIf(c.AckOnReceipt && c.Strategy != StrategyInbox, "AckOnReceipt Strategy", "is set, and the strategy is %v, which stores no message before its effect; use StrategyInbox", c.Strategy)
	f.addIf(c.Lanes > LanesKey, "Lanes", "%v is not a lane mode; use LanesPartition, LanesKey or LanesNone", c.Lanes)
	switch {
	case f.addIf(c.OnParked > OnParkedBlock, "OnParked", "%v is not valid; use OnParkedSkip or OnParkedBlock", c.OnParked):
	case f.addIf(blocks && c.Lanes == LanesNone, "OnParked Lanes", "with Lanes: LanesNone there is no order, so no message waits for another; write Lanes: LanesKey, or remove it"):
	case f.addIf(blocks && !marks, "OnParked Strategy Lanes", noInbox+"; remove it, or write Strategy: StrategyMarker"):
	case f.addIf(blocks && c.Version != nil, "OnParked Version Strategy Lanes", "with Version, a parked message blocks the later versions of its stream anyway, and no other messages; remove it"):
	}
}

// checkAction adds a fault if an action is not possible for the field.
func (f *faultList) checkAction(field string, then Action, allowed ...Action) {
	f.addIf(!slices.Contains(allowed, then), field, "%v is not an ending that is possible here", then)
}

func (c *Config) checkEndings(f *faultList) {
	switch {
	case f.addIf(c.OnFiltered > OnFilteredDeadLetter, "OnFiltered", "%v is not one of OnFilteredSkip, OnFilteredPark and OnFilteredDeadLetter", c.OnFiltered):
	case f.addIf(c.OnFiltered != OnFilteredSkip && c.Filter.takesAll(), "OnFiltered Filter", "says what becomes of messages that Filter leaves out, and Filter takes all; set Filter, or remove it"):
	}
	f.checkAction("OnConflict", c.OnConflict, ActionPark, ActionDeadLetter, ActionHalt, ActionKeepFirst)
	f.checkAction("OnBadIdentity", c.OnBadIdentity, ActionPark, ActionDeadLetter, ActionHalt)
	f.checkAction("OnPrecondition", c.OnPrecondition, ActionPark, ActionDeadLetter, ActionDiscard, ActionRetry)
	f.checkAction("Retry.OnExhausted", c.Retry.OnExhausted, ActionPark, ActionDeadLetter, ActionHalt)
	f.checkAction("Retention.OnExpired", c.Retention.OnExpired, ActionPark, ActionDeadLetter, ActionHalt, ActionDiscard)
}

// deadLetters reports whether a message may end in the dead letters.
func (c *Config) deadLetters() bool {
	return c.OnFiltered == OnFilteredDeadLetter || c.Retention.OnExpired == ActionDeadLetter || c.Version != nil && c.Version.Missing == ActionDeadLetter || slices.Contains([]Action{c.OnConflict, c.OnBadIdentity, c.OnPrecondition, c.Retry.OnExhausted}, ActionDeadLetter)
}

func (c *Config) checkLimits(f *faultList) {
	between := func(field string, n, least, most int64) {
		f.addIf(n < least || n > most, field, "is %d; it must be %d to %d", n, least, most)
	}
	within := func(field string, d, least, most time.Duration) {
		f.addIf(d < least || d > most, field, "is %v; it must be %v to %v", d, least, most)
	}
	r := &c.Retry
	between("Workers", int64(c.Workers), 1, 1024)
	between("Batch.MaxSize", int64(c.Batch.MaxSize), 1, 10000)
	between("MaxUnacked.Messages", int64(c.MaxUnacked.Messages), 1, 1_000_000)
	between("MaxUnacked.Bytes", c.MaxUnacked.Bytes, 1, 1<<40)
	between("MaxBody", c.MaxBody, delivery.KeptOfLargest, 1<<30)
	between("Retry.MaxAttempts", int64(r.MaxAttempts), 1, 1_000_000)
	between("Retry.Budget.PerSecond", int64(r.Budget.PerSecond), 1, 1_000_000)
	between("Retry.Budget.Percent", int64(r.Budget.Percent), 1, 1000)
	between("Retry.SerialAfter", int64(r.SerialAfter), 1, 1_000_000)
	between("Retry.BreakerThreshold", int64(r.BreakerThreshold), 0, 1_000_000)
	between("Canary", int64(c.Canary), 0, 1_000_000_000)
	between("Inbox.MaxCrashes", int64(c.Inbox.MaxCrashes), 1, 100)
	within("Timeout", c.Timeout, time.Millisecond, 24*time.Hour)
	within("Batch.MaxTime", c.Batch.MaxTime, time.Microsecond, time.Hour)
	within("MaxInMemoryWait", c.MaxInMemoryWait, time.Millisecond, time.Hour)
	within("Drain", c.Drain, time.Millisecond, time.Hour)
	within("CommitTimeout", c.CommitTimeout, 10*time.Millisecond, time.Hour)
	within("Retry.InitialDelay", r.InitialDelay, time.Microsecond, time.Hour)
	within("Retry.MaxDelay", r.MaxDelay, 0, 365*24*time.Hour)
	within("Inbox.Lease", c.Inbox.Lease, time.Second, time.Hour)
	within("Inbox.Poll", c.Inbox.Poll, 10*time.Millisecond, time.Minute)
	within("IdleExit", c.IdleExit, 0, 24*time.Hour)
	f.addIf(r.DisableBreaker && r.BreakerThreshold > 0, "Retry.BreakerThreshold Retry.DisableBreaker", "the circuit breaker never opens with Retry.DisableBreaker: true; remove one of them")
	f.addIf(r.InitialDelay > r.MaxDelay, "Retry.InitialDelay Retry.MaxDelay MaxInMemoryWait", "the first wait, %s, is longer than Retry.MaxDelay, %s; write at most %[2]s", legible.Span(r.InitialDelay), legible.Span(r.MaxDelay))
}

// leastKeep is the minimum retention. A shorter value was probably given in a wrong unit.
const leastKeep = time.Minute

func (c *Config) checkRetention(f *faultList) {
	r := &c.Retention
	within := func(field string, d, least time.Duration) {
		f.addIf(d != 0 && (d < least || d > 200*365*24*time.Hour), field, "is %v; it must be %v to 200 years, or 0", d, least)
	}
	within("Retention.Keep", r.Keep, leastKeep)
	within("Retention.Bodies", r.Bodies, leastKeep)
	within("Retention.Delay", r.Delay, 0)
	switch {
	case f.addIf(r.Bodies > 0 && r.Keep > 0 && r.Bodies >= r.Keep, "Retention.Bodies Retention", "bodies would be kept longer than their messages; write less than Retention.Keep, or remove it"):
	case f.addIf(r.IDTime > identity.Snowflake, "Retention.IDTime", "%v is not a kind of id", r.IDTime):
	case f.addIf(r.DailyPartitions && r.IDTime == identity.NoIDTime, "Retention.DailyPartitions Retention", "needs ids that carry their time; set IDTime"):
	case f.addIf(r.Keep == 0 && (r.DailyPartitions || r.Delay != 0 || r.IDTime != identity.NoIDTime || r.OnExpired != ActionPark), "Retention", "is set, but without Keep all markers are kept; set Keep"):
	}
}

func (c *Config) checkVersion(f *faultList) {
	v := c.Version
	if v == nil {
		return
	}
	if v.By != nil {
		f.addError("Version.By", v.By.Validate())
	}
	f.checkAction("Version.Missing", v.Missing, ActionPark, ActionDeadLetter, ActionHalt)
	f.addIf(v.By == nil, "Version.By", `is missing; say where stream and version are: identity.Stream("body:/order").At("body:/version")`)
	f.addIf(v.FirstSeen && v.Start != 0, "Version.Start", "is %d, but FirstSeen begins a stream with the first version that arrives; remove one of them", v.Start)
	f.addIf(!v.FirstSeen && (v.Start < 1 || v.Start > versions.Max), "Version.Start", "is %d; versions are from 1 to %d", v.Start, int64(versions.Max))
	f.addIf(v.Gap < time.Second || v.Gap > 365*24*time.Hour, "Version.Gap", "is %v; it must be 1s to 8760h", v.Gap)
	f.addIf(v.GapCap < 0, "Version.GapCap", "is %d; it must be 1 or more, or 0 for any number", v.GapCap)
	f.addIf(!c.Strategy.marks(), "Version Strategy", noInbox+": a version without its predecessor could not wait; remove it, or write Strategy: StrategyMarker")
}

// checkRuns reports faults of generations, of replays, and of what a duplicate causes.
func (c *Config) checkRuns(f *faultList) {
	if g := c.Generation; g != nil {
		switch {
		case f.addIf(g.Number < 0, "Generation.Number", "is %d; it is 0 or more", g.Number):
		case f.addIf(g.Number == 0 && g.Building, "Generation.Building", "is true, but generation 0 is never built by a rebuild"):
		case f.addIf(!c.Strategy.marks() && g.Building, "Generation.Building", "is true, and Strategy is %v, which writes no markers: after the switch it would be unknown what the rebuild has applied", c.Strategy):
		}
	}
	if r := c.Replay; r != nil {
		switch {
		case f.addIf(r.ID < 1, "Replay.ID", "is %d; it is the replay's number in the store, 1 or more", r.ID):
		case f.addIf(r.Generation != c.generation(), "Replay.Generation", "is %d, and the consumer works in generation %d; give both the same", r.Generation, c.generation()):
		case f.addIf(c.ReEmitIntents, "ReEmitIntents", "is set, and in a replay most messages are duplicates, whose intents would all be sent again; remove it"):
		}
	}
	const unmarked = "is set, and with the Strategy %v no marker tells which messages are duplicates; remove it"
	f.addIf(c.OnDuplicate != nil && !c.Strategy.marks(), "OnDuplicate Strategy", unmarked, c.Strategy)
	f.addIf(c.ReEmitIntents && !c.Strategy.marks(), "ReEmitIntents Strategy", unmarked, c.Strategy)
	f.addIf(!c.ReEmitIntents && len(c.SenderWindows) > 0, "SenderWindows", "limits the age of intents that are sent again, but ReEmitIntents is not set; set it, or remove SenderWindows")
	for sender, window := range c.SenderWindows {
		f.addIf(window <= 0 && window != WindowNever, "SenderWindows", "is %v of %q; it is a time, or WindowAlways, or WindowNever", window, sender)
	}
}
