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
	// Identity finds identities; nil: the messages have none that is marked.
	Identity identity.Identity
	// Previous finds previous identities; nil: there are none.
	Previous    identity.Identity
	Fingerprint identity.Fingerprinter
	// Version finds a message's place in its stream; nil: there are no streams.
	Version identity.Versioner
	// Type is the selector of types; nil: the type is that of CloudEvents.
	Type *selectors.Selector
	// Types watches whether messages have types; nil: nobody does.
	Types  *TypeWatch
	Filter Filter
	// SkipFiltered: no row is written of a message that the filter excludes.
	SkipFiltered bool
	// MaxBody is the longest body in bytes that is processed.
	MaxBody int64
	// FitIdentity returns an id as the store holds it; nil: as it is.
	FitIdentity func(source, id string) (string, error)
	// Replay is the replay that the messages are part of, nil if there is none.
	Replay *semel.Replay
	// ByKey: messages of one key take one route, also those of a stream.
	ByKey bool
}

// Filter selects the messages of a consumer by their types and headers.
type Filter struct {
	Types   []string
	Headers map[string][]string
}

// Takes reports whether a message is the consumer's by the filter. refused says that the source
// refused it, so that it may have lost its type and headers with its form: then only what is there
// can show that it is not.
func (c *Rules) Takes(m *semel.Message, refused bool) bool {
	kind, partly, _ := c.typeOf(reader{}, m)
	return c.misses(m, kind, refused || partly) == ""
}

// misses returns the name of a condition that message m with type kind fails to meet, or
// "" if m is the consumer's. What a source refused may have lost its type and headers with its form: then
// only what is there can show that it is somebody else's.
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

// typeOf finds the type that Rules.Type selects; "" for one that is not there. partly
// says that what is found may not be all: then a type that is missing shows nothing.
func (c *Rules) typeOf(r reader, m *semel.Message) (kind string, partly bool, err error) {
	switch {
	case c.Type == nil && len(c.Filter.Types) == 0 && !c.Types.deciding():
		return "", false, nil // nobody needs it
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

// typed gives the message the type that Rules.Type found. Identity and fingerprint have
// been found before, so that a change of Rules.Type changes neither.
func (p *Delivery) typed(c *Rules, kind string) {
	if c.Type != nil && kind != "" {
		p.Message.Attributes.Type = kind
	}
}

// typedAlone is typed for a row, which may have been received before Rules.Type was set. A
// type that cannot be read stays what the row says.
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

// NoteTypeAsked tells the type watch if the handler has asked m for its type, which is missing.
func (c *Rules) NoteTypeAsked(m *semel.Message) {
	if w := c.Types; w != nil && !w.over.Load() && m.Strict.TypeAsked() {
		w.ask()
	}
}
