package policy

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/selectors"
)

// Config is the consumer's policy for consumer.New, without its Source and what
// else a policy file does not say. It opens nothing.
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
		NaturalReason:    c.Strategy.because(),
		OnConflict:       c.OnConflict,
		OnBadIdentity:    c.OnBadIdentity,
		OnPrecondition:   c.OnPrecondition,
		ReEmitIntents:    c.ReEmitIntents,
		Lanes:            c.Lanes,
		OnParked:         c.OnParked,
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

// NaturalReason says why it does no harm that messages are applied without a key; empty where
// they are not.
func (c *Consumer) NaturalReason() string {
	if !c.FailOpen {
		return ""
	}
	return strings.TrimSuffix(fmt.Sprintf("the effect is a %s: %s", c.Effect.Kind, c.Effect.Says), ": ")
}

// retention is the policy with what becomes of a late message, where something is late.
func (c *Consumer) retention() consumer.RetentionPolicy {
	r := c.Retention
	if r.Keep == 0 {
		return consumer.RetentionPolicy{Bodies: r.Bodies, Off: r.Off}
	}
	r.OnExpired = c.OnExpired
	return r
}

// ParkDeadLetters sets aside in the store what would go to the dead letters, for a source
// that keeps none.
func (c *Consumer) ParkDeadLetters() {
	ends := []*consumer.Action{&c.OnExpired, &c.OnConflict, &c.OnBadIdentity, &c.OnPrecondition, &c.Retry.OnExhausted}
	if c.Version != nil {
		own := *c.Version
		c.Version = &own
		ends = append(ends, &own.Missing)
	}
	for _, then := range ends {
		if *then == consumer.ActionDeadLetter {
			*then = consumer.ActionPark
		}
	}
	if c.OnFiltered == consumer.OnFilteredDeadLetter {
		c.OnFiltered = consumer.OnFilteredPark
	}
}

// policy is nil where the file names no versions.
func (v *Version) policy() *consumer.VersionPolicy {
	if v == nil {
		return nil
	}
	return &consumer.VersionPolicy{By: v.by(), Start: v.Start.Number, FirstSeen: v.Start.FirstSeen, Gap: v.GapDeadline, GapCap: v.GapCap, Missing: v.Missing}
}

func (v *Version) by() *identity.Versions { return identity.Stream(v.Stream...).At(v.Number) }

// kind is the strategy beside which a business key may stand.
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

func (s Strategy) because() string {
	switch {
	case s.Natural == nil:
		return ""
	case s.Natural.Order != "":
		return "order: " + s.Natural.Order
	}
	return s.Natural.Because
}

// identity is nil, not an empty one, where the policy names none.
func (i Identity) identity() identity.Identity {
	if len(i.ID) == 0 {
		return nil
	}
	return i.selected()
}

func (i Identity) selected() *identity.Selected {
	of := selected(i.ID, i.Source)
	if i.Trusted {
		of.Trusted()
	}
	return of
}

func selected(id []string, source string) *identity.Selected {
	identity := identity.By(id...)
	if source != "" {
		identity = identity.From(source)
	}
	return identity
}

// identity is nil where the policy names no former identity.
func (f *PreviousIdentity) identity() *consumer.PreviousIdentity {
	if f == nil {
		return nil
	}
	return &consumer.PreviousIdentity{Identity: selected(f.ID, f.Source).Trusted(), TrustUnfingerprinted: f.TrustUnfingerprinted}
}

// owner is the set of handler types, by which a service under the same name is told from
// this one; empty where there is one handler for all.
func (c *Consumer) owner() string {
	var types []string
	for _, h := range c.Handlers() {
		if h.Type != "" {
			types = append(types, h.Type)
		}
	}
	if len(types) == 0 {
		return ""
	}
	slices.Sort(types)
	text := "the handlers of " + strings.Join(types, ", ")
	if sum := sha256.Sum256([]byte(text)); len(text) > mostOwner {
		text = fmt.Sprintf("%s… (sha256 %x)", strings.ToValidUTF8(text[:mostOwner], ""), sum[:8])
	}
	return text
}

// mostOwner is how many bytes of the names of types are shown.
const mostOwner = 500

// ConstantSource is the one source that every identity has, and false if each
// message says its own.
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

// Kept is how long identities are recognised, as the file writes it.
func (c *Consumer) Kept() string {
	if c.Retention.Keep == 0 {
		return forever
	}
	return legible.Span(c.Retention.Keep)
}

// Says is what is declared of the effect, as attributes of a log line; none if nothing is.
func (c *Consumer) Says() []any {
	if c.Effect == nil {
		return nil
	}
	return []any{"effect", string(c.Effect.Kind), "says", c.Effect.Says}
}

// provider is what is known of the other side of a consumer that calls out.
func (c *Consumer) provider() consumer.Provider {
	switch h := c.Handler.HTTP; {
	case c.Handler.Kafka != nil: // who reads the topic recognises a copy whenever it comes
		return consumer.Provider{Window: consumer.WindowAlways}
	case h != nil && h.Effects != nil: // what it is asked for is in its answer
		return consumer.Provider{Window: consumer.WindowAlways}
	case h != nil && h.MayDouble != "":
		return consumer.Provider{Window: consumer.WindowAlways}
	case h != nil && h.MayBeLost != "":
		return consumer.Provider{Window: consumer.WindowNever, OnUnknown: consumer.ActionDiscard}
	}
	return c.Handler.HTTP.provider()
}
