package delivery

import (
	"fmt"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer/internal/guard"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/reading"
	"github.com/semel-go/semel/internal/selectors"
)

// Rules say how a consumer recognises its messages.
type Rules struct {
	guard.Guard
	// Identity finds identities; nil: identities are not marked.
	Identity identity.Identity
	// Previous finds previous identities; nil: there are none.
	Previous    identity.Identity
	Fingerprint identity.Fingerprinter
	// Version finds stream and version of a message; nil: there are no streams.
	Version identity.Versioner
	// Type is the selector of types; nil: the type is that of CloudEvents.
	Type *selectors.Selector
	// Types watches whether messages have types; nil: they are not watched.
	Types  *TypeWatch
	Filter Filter
	// SkipFiltered: messages that the filter excludes are settled, and no row is written of them.
	SkipFiltered bool
	// MaxBody is the longest body in bytes that is processed.
	MaxBody int64
	// FitIdentity returns an id in the form in which the store holds it; nil: unchanged.
	FitIdentity func(source, id string) (string, error)
	// Replay is the replay that the messages are part of, nil if there is none.
	Replay *semel.Replay
	// ByKey: messages of one key have one route, even if they are of different streams.
	ByKey bool
}

// Filter selects the messages of a consumer by their types and headers.
type Filter struct {
	Types   []string
	Headers map[string][]string
}

// Takes reports whether the filter selects a message. With refused, the source could not read the
// message completely: then only a type or header that is there can exclude the message, and one that is
// missing cannot.
func (c *Rules) Takes(m *semel.Message, refused bool) bool {
	kind, partly, _ := c.typeOf(reader{}, m)
	return c.misses(m, kind, refused || partly) == ""
}

// misses returns the name of a condition that message m with type kind fails to meet, or "" if the
// filter selects m. With refused, a missing type or header does not count; see Takes.
func (c *Rules) misses(m *semel.Message, kind string, refused bool) string {
	if len(c.Filter.Types) > 0 && !slices.Contains(c.Filter.Types, kind) && (kind != "" || !refused) {
		return "type"
	}
	for name, values := range c.Filter.Headers {
		if !headerIs(m.Headers, name, values, refused) {
			return "header " + legible.Printable(name)
		}
	}
	return ""
}

func headerIs(headers semel.Headers, name string, values []string, absent bool) bool {
	for i := range headers {
		if !strings.EqualFold(headers[i].Name, name) {
			continue
		}
		if slices.Contains(values, string(headers[i].Value)) {
			return true
		}
		absent = false
	}
	return absent
}

// typeOf returns the type that Rules.Type selects, "" if there is none. With partly, the type could not
// be read, so that a missing type must not exclude the message.
func (c *Rules) typeOf(r reader, m *semel.Message) (kind string, partly bool, err error) {
	switch {
	case c.Type == nil && len(c.Filter.Types) == 0 && !c.Types.deciding():
		return "", false, nil // the type is not needed
	case c.Type == nil:
		return m.Type(), false, nil
	case c.Type.InBody() && c.isTooLarge(m):
		return "", true, nil
	}
	if kind, err = c.Type.TextIn(r.room, m); err != nil {
		return "", true, fmt.Errorf("its type: %w", err)
	}
	if kind == "" {
		kind = m.Type()
	}
	return kind, false, nil
}

// typed sets the type of the message to the one that Rules.Type selects. typed is called after
// identity and fingerprint were found, so that a change of Rules.Type changes neither.
func (p *Delivery) typed(c *Rules, kind string) {
	if c.Type != nil && kind != "" {
		p.Message.Attributes.Type = kind
	}
}

// typedAlone is typed for a row, which may have been stored before Rules.Type was set. If the type
// cannot be read, the row's type stays.
func (p *Delivery) typedAlone(c *Rules) {
	if c.Type == nil {
		return
	}
	room := reading.Borrow()
	defer room.Return()
	if kind, _, err := c.typeOf(reader{room: room}, &p.Message); err == nil {
		p.typed(c, kind)
	}
}

// NoteTypeAsked notes in Types that the handler has asked m for its type, if it has.
func (c *Rules) NoteTypeAsked(m *semel.Message) {
	if w := c.Types; w != nil && !w.over.Load() && m.Strict.TypeAsked() {
		w.ask()
	}
}
