package shape

import (
	"maps"
)

// Schema is a JSON Schema (draft 2020-12). Each shape returns a schema, so that editors accept the same
// files as the parser.
type Schema map[string]any

// reference matches a reference to an environment variable.
const reference = `\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}`

// OrVariable returns a schema that accepts the values of s and references to environment variables.
func OrVariable(s Schema) Schema {
	return Schema{"anyOf": []Schema{s, {"type": "string", "pattern": reference}}}
}

func (o Object[T]) Schema() Schema {
	properties := Schema{}
	var required []string
	for _, f := range o.Fields {
		properties[f.Name] = f.Meta.Schema()
		if f.Required {
			required = append(required, f.Name)
		}
	}
	s := Schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	o.exclusive(s)
	if o.Short == nil {
		return s
	}
	return Schema{"anyOf": []Schema{o.Short.Schema(), s}}
}

// exclusive requires exactly one of the keys in OneOf.
func (o Object[T]) exclusive(s Schema) {
	var each []Schema
	for _, f := range o.Fields {
		for _, name := range o.OneOf {
			if name == f.Name && !f.Later {
				each = append(each, Schema{"required": []string{name}})
			}
		}
	}
	if len(each) > 0 {
		s["oneOf"] = each
	}
}

func (m Meta) Schema() Schema {
	if m.Later {
		return Schema{"description": m.Doc + " Known and not yet available.", "not": Schema{}}
	}
	s := maps.Clone(m.Shape.Schema())
	s["description"] = m.Doc
	if m.Def != "" {
		s["default"] = m.Def
	}
	return s
}

func (t Named[T]) Schema() Schema {
	return Schema{"type": "object", "minProperties": 1, "additionalProperties": t.Item.Schema(),
		"propertyNames": Schema{"pattern": `^[A-Za-z0-9_.-]{1,100}$`}}
}

func (l List[V]) Schema() Schema {
	many := Schema{"type": "array", "minItems": 1, "items": l.Item.Schema()}
	if l.Single {
		return Schema{"anyOf": []Schema{l.Item.Schema(), many}}
	}
	return many
}

func (w Word) Schema() Schema {
	s := Schema{"type": "string", "pattern": `\S`}
	if w.Pattern != "" {
		return OrVariable(Schema{"type": "string", "pattern": w.Pattern})
	}
	return s
}

func (c Choice[V]) Schema() Schema {
	var all []string
	for _, o := range c.Options {
		if o.usable() {
			all = append(all, o.Word)
		}
	}
	return OrVariable(Schema{"enum": all})
}

func (Boolean) Schema() Schema { return OrVariable(Schema{"type": "boolean"}) }

func (c Count) Schema() Schema {
	return OrVariable(Schema{"type": "integer", "minimum": c.Least, "maximum": c.Most})
}

func (OneIn) Schema() Schema {
	return OrVariable(Schema{"type": "string", "pattern": `^1/[1-9][0-9]*$`})
}

func (Span) Schema() Schema {
	return OrVariable(Schema{"type": "string", "pattern": `^([0-9]+d)?([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))*$`})
}

func (Size) Schema() Schema {
	return OrVariable(Schema{"type": "string", "pattern": `^[0-9]+(B|kB|KiB|MB|MiB|GB|GiB)$`})
}
