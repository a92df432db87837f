package consumer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/reasonname"
)

// ByType combines several handlers into one handler, which calls the handler that is registered for the type
// of the message. The type is the attribute type, or the header ce-type. A handler is registered under a type
// ("payment.made"), or under a type and a schema version ("payment.made@2"). The schema version is the
// message's dataschema attribute, or the header ce-dataschema. The name can contain the whole schema
// ("payment.made@https://example.com/schemas/payment/2") or only the part after the last slash, colon or
// number sign ("payment.made@2"). ByType first looks for a handler of the type with the whole schema, then of
// the type with the version, then of the type alone.
//
// A message without a handler ends at once, without further attempts, as Config.Retry.OnExhausted says. The reason of a
// message without a handler is "unknown type". ByType panics if a handler is nil.
func ByType[Tx any](handlers map[string]func(ctx context.Context, tx Tx, m *semel.Message) error) func(ctx context.Context, tx Tx, m *semel.Message) error {
	handlers = maps.Clone(handlers)
	for name, handle := range handlers {
		if handle == nil {
			panic("semel: ByType: the handler of " + legible.Printable(name) + " is nil")
		}
	}
	unknown := knownTypes(handlers)
	return func(ctx context.Context, tx Tx, m *semel.Message) error {
		for _, name := range typeNames(m) {
			if handle, ok := handlers[name]; ok {
				return handle(ctx, tx, m)
			}
		}
		err := fmt.Errorf("no handler for type %q, schema %q; %s", m.Type(), m.DataSchema(), unknown)
		if m.Type() == "" {
			err = errors.New("the message has no type; " + unknown)
		}
		return &semel.HandlerError{Decision: semel.DecidePermanent, Reason: reasonname.UnknownType, Err: err}
	}
}

// typeNames returns the names under which a handler of m may be registered, the most specific first.
func typeNames(m *semel.Message) []string {
	kind, schema := m.Type(), m.DataSchema()
	if schema == "" {
		return []string{kind}
	}
	names := []string{kind + "@" + schema, kind}
	if i := strings.LastIndexAny(schema, "/:#"); i >= 0 {
		names = slices.Insert(names, 1, kind+"@"+schema[i+1:])
	}
	return names
}

// mostKnownTypes limits the number of types in an error.
const mostKnownTypes = 20

func knownTypes[H any](handlers map[string]H) string {
	names := slices.Sorted(maps.Keys(handlers))
	if len(names) > mostKnownTypes {
		names = append(names[:mostKnownTypes], "…")
	}
	if len(names) == 0 {
		return "there are no handlers"
	}
	return "there are handlers for " + strings.Join(names, ", ")
}
