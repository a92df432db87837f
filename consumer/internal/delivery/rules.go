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

// Rules say how a consumer reads its messages.
type Rules struct {
	guard.Guard
	// Identity finds identities. If Identity is nil, no markers are written.
	Identity identity.Identity
	// Previous finds previous identities. Previous is nil if there are none.
	Previous    identity.Identity
	Fingerprint identity.Fingerprinter
	// Version finds stream and version of a message. Version is nil if there are no streams.
	Version identity.Versioner
	// Type is the selector of types. If Type is nil, the type is the CloudEvents attribute type.
	Type *selectors.Selector
	// Types watches whether messages have types. If Types is nil, types are not watched.
	Types  *TypeWatch
	Filter Filter
	// SkipFiltered means that messages that the filter excludes are acked, and no row is written.
	SkipFiltered bool
	// MaxBody is the maximum length in bytes of a body that is processed.
	MaxBody int64
	// FitIdentity returns an id in the spelling that the store saves. If FitIdentity is nil, ids are not changed.
	FitIdentity func(source, id string) (string, error)
	// Replay is the replay to which the messages belong, or nil if there is none.
	Replay *semel.Replay
	// ByKey means that all messages of one key go to one worker, even if they belong to different streams.
	ByKey bool
}

// Filter selects the messages of a consumer by their types and headers.
type Filter struct {
	Types   []string
	Headers map[string][]string
}

// Takes reports whether the filter selects a message. The parameter refused means that the source could not read the
// message completely. A message that was not read completely can be excluded by a type or header that could be read,
// but not by a missing type or header.
func (c *Rules) Takes(m *semel.Message, refused bool) bool {
	kind, partly, _ := c.typeOf(reader{}, m)
	return c.misses(m, kind, refused || partly) == ""
}

// misses returns the name of a condition that message m with type kind does not meet, or "" if the filter selects m. If
// the parameter refused is set, a missing type or header does not exclude m; see Takes.
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

// typeOf returns the type that Rules.Type selects, or "" if there is none. The result partly means that the type could
// not be read, so that a missing type must not exclude the message.
func (c *Rules) typeOf(r reader, m *semel.Message) (kind string, partly bool, err error) {
	switch {
	case c.Type == nil && len(c.Filter.Types) == 0 && !c.Types.isUndecided():
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

// setType sets the type of the message to the type that Rules.Type selects. setType is called after identity and
// fingerprint were found, so that a change of Rules.Type changes neither identity nor fingerprint.
func (p *Delivery) setType(c *Rules, kind string) {
	if c.Type != nil && kind != "" {
		p.Message.Attributes.Type = kind
	}
}

// setTypeAlone does the same as setType for a row, which may have been stored before Rules.Type was set. If the type
// cannot be read, the row keeps its type.
func (p *Delivery) setTypeAlone(c *Rules) {
	if c.Type == nil {
		return
	}
	room := reading.Borrow()
	defer room.Return()
	if kind, _, err := c.typeOf(reader{room: room}, &p.Message); err == nil {
		p.setType(c, kind)
	}
}

// NoteTypeAsked reports to Types whether the handler has read the type of m.
func (c *Rules) NoteTypeAsked(m *semel.Message) {
	if w := c.Types; w != nil && !w.over.Load() && m.Strict.TypeAsked() {
		w.requireTypes()
	}
}
