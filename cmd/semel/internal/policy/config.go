package policy

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/admin"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/selectors"
)

// Config returns the consumer's configuration for consumer.New. Config leaves Source and all fields without
// a policy key empty, and opens nothing.
func (c *Consumer) Config() consumer.Config {
	return consumer.Config{
		Name:             c.Name,
		Type:             c.Type,
		Filter:           c.Filter,
		OnFiltered:       c.OnFiltered,
		Identity:         c.Identity.identity(),
		PreviousIdentity: c.Identity.Previous.identity(),
		Owner:            c.owner(),
		Exclusive:        c.Exclusive,
		Fingerprint:      c.Fingerprint.fingerprinter(),
		Strategy:         c.Strategy.kind(),
		NaturalReason:    c.Strategy.naturalReason(),
		OnConflict:       c.OnConflict,
		OnBadIdentity:    c.OnBadIdentity,
		OnPrecondition:   c.OnPrecondition,
		ReEmitIntents:    c.ReEmitIntents,
		Lanes:            c.Lanes,
		OnParked:         c.OnParked,
		Canary:           c.Canary,
		Workers:          c.Workers,
		Timeout:          c.Timeout,
		Batch:            c.Batch,
		MaxInMemoryWait:  c.MaxInMemoryWait,
		MaxUnacked:       c.MaxUnacked,
		MaxBody:          c.MaxBody,
		Drain:            c.Drain,
		Retry:            c.Retry,
		AckOnReceipt:     c.AckOnReceipt,
		Inbox:            c.Inbox,
		Version:          c.Version.policy(),
		Retention:        c.retention(),
		Provider:         c.provider(),
		Generation:       c.In,
	}
}

// NaturalReason returns the reason why messages without a key may be applied. NaturalReason returns "" if the
// consumer rejects messages without a key.
func (c *Consumer) NaturalReason() string {
	if !c.FailOpen {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("the effect is a %s: %s", c.Effect.Kind, c.Effect.Says), ": ")
}

// retention returns the retention policy. OnExpired is set only if a message can be older than the
// retention.
func (c *Consumer) retention() consumer.RetentionPolicy {
	r := c.Retention
	if r.Keep == 0 {
		return consumer.RetentionPolicy{Bodies: r.Bodies, Off: r.Off}
	}
	r.OnExpired = c.OnExpired
	return r
}

// ParkDeadLetters changes all settings dead_letter to park, for a source without a dead-letter topic.
func (c *Consumer) ParkDeadLetters() {
	if c.Version != nil {
		own := *c.Version
		c.Version = &own
	}
	for _, then := range c.actions() {
		if *then == consumer.ActionDeadLetter {
			*then = consumer.ActionPark
		}
	}
	if c.OnFiltered == consumer.OnFilteredDeadLetter {
		c.OnFiltered = consumer.OnFilteredPark
	}
}

// policy returns the consumer's version policy, or nil if the file has no versions.
func (v *Version) policy() *consumer.VersionPolicy {
	if v == nil {
		return nil
	}
	return &consumer.VersionPolicy{By: v.identityVersions(), Start: v.Start.Number, FirstSeen: v.Start.FirstSeen, Gap: v.GapDeadline, GapCap: v.GapCap, Missing: v.Missing}
}

func (v *Version) identityVersions() *identity.Versions {
	return identity.Stream(v.Stream...).At(v.Number)
}

// kind returns the strategy. For a business key in addition to another strategy, kind returns the other
// strategy.
func (s Strategy) kind() consumer.Strategy {
	switch {
	case s.Natural != nil:
		return consumer.StrategyNatural
	case s.Inbox, s.Lease:
		return consumer.StrategyInbox
	case s.BusinessKey != nil && !s.Marker:
		return consumer.StrategyBusinessKey
	}
	return consumer.StrategyMarker
}

func (s Strategy) naturalReason() string {
	switch {
	case s.Natural == nil:
		return ""
	case s.Natural.Order != "":
		return "order: " + s.Natural.Order
	}
	return s.Natural.Because
}

// identity returns the selectors of the identity, or nil if the policy has no identity.
func (i Identity) identity() identity.Identity {
	if len(i.ID) == 0 {
		return nil
	}
	return i.selectedIdentity()
}

func (i Identity) selectedIdentity() *identity.Selected {
	of := newSelectedIdentity(i.ID, i.Source)
	if i.Trusted {
		of.Trusted()
	}
	return of
}

func newSelectedIdentity(id []string, source string) *identity.Selected {
	identity := identity.By(id...)
	if source != "" {
		identity = identity.From(source)
	}
	return identity
}

// identity returns the selectors of the previous identity, or nil if the policy has none.
func (f *PreviousIdentity) identity() *consumer.PreviousIdentity {
	if f == nil {
		return nil
	}
	return &consumer.PreviousIdentity{Identity: newSelectedIdentity(f.ID, f.Source).Trusted(), TrustUnfingerprinted: f.TrustUnfingerprinted}
}

// owner returns the types of the consumer's handlers, joined. The types distinguish services that use the
// same consumer name. owner returns "" if one handler processes all types.
func (c *Consumer) owner() string {
	var types []string
	for _, h := range c.Handlers() {
		if h.Type != "" {
			types = append(types, h.Type)
		}
	}
	return admin.HandlersOf(types)
}

// ConstantSource returns the source that all identities of the consumer share. ConstantSource returns false
// if each message has a source of its own.
func (i Identity) ConstantSource() (string, bool) {
	if i.Source == "" {
		return "", true
	}
	selector, err := selectors.Parse(i.Source)
	if err != nil || !selector.Constant() {
		return "", false
	}
	value, err := selector.Value(&semel.Message{})
	return value.Text(), err == nil
}

func (f Fingerprint) fingerprinter() identity.Fingerprinter {
	switch {
	case f.None:
		return identity.FingerprintNone()
	case len(f.Selectors) > 0:
		return identity.FingerprintOf(f.Selectors...)
	}
	return identity.FingerprintBody()
}

// Kept returns the retention of markers, as written in the file.
func (c *Consumer) Kept() string {
	if c.Retention.Keep == 0 {
		return forever
	}
	return legible.Span(c.Retention.Keep)
}

// Says returns the declared effect as attributes for a log line, or nil if the policy declares no effect.
func (c *Consumer) Says() []any {
	if c.Effect == nil {
		return nil
	}
	return []any{"effect", string(c.Effect.Kind), "says", c.Effect.Says}
}

// provider returns the settings for the system that the handler calls.
func (c *Consumer) provider() consumer.Provider {
	switch h := c.Handler.HTTP; {
	case c.Handler.Kafka != nil: // a record that is published twice is harmless, because consumers of the topic recognise copies at any time
		return consumer.Provider{Window: consumer.WindowAlways}
	case h != nil && h.Effects != nil: // a response contains the effects, so a repeated call is harmless
		return consumer.Provider{Window: consumer.WindowAlways}
	case h != nil && h.MayDouble != "":
		return consumer.Provider{Window: consumer.WindowAlways}
	case h != nil && h.MayBeLost != "":
		return consumer.Provider{Window: consumer.WindowNever, OnUnknown: consumer.ActionDiscard}
	}
	return c.Handler.HTTP.provider()
}
