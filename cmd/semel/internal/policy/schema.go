package policy

import (
	"maps"
)

// schema is a JSON Schema (draft 2020-12). Each shape says its own, so that an
// editor knows what the parser accepts.
type schema map[string]any

// reference is what stands for a value of the environment.
const reference = `\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}`

// orVariable also accepts a text with a reference to the environment.
func orVariable(s schema) schema {
	return schema{"anyOf": []schema{s, {"type": "string", "pattern": reference}}}
}

func (o object[T]) schema() schema {
	properties := schema{}
	var required []string
	for _, f := range o.fields {
		properties[f.name] = f.meta.schema()
		if f.required {
			required = append(required, f.name)
		}
	}
	s := schema{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	o.exclusive(s)
	if o.short == nil {
		return s
	}
	return schema{"anyOf": []schema{o.short.schema(), s}}
}

// exclusive says which keys exclude one another.
func (o object[T]) exclusive(s schema) {
	var each []schema
	for _, f := range o.fields {
		for _, name := range o.oneOf {
			if name == f.name && !f.later {
				each = append(each, schema{"required": []string{name}})
			}
		}
	}
	if len(each) > 0 {
		s["oneOf"] = each
	}
}

func (m meta) schema() schema {
	if m.later {
		return schema{"description": m.doc + " Known and not yet available.", "not": schema{}}
	}
	s := maps.Clone(m.shape.schema())
	s["description"] = m.doc
	if m.def != "" {
		s["default"] = m.def
	}
	return s
}

func (t named[T]) schema() schema {
	return schema{"type": "object", "minProperties": 1, "additionalProperties": t.item.schema(),
		"propertyNames": schema{"pattern": `^[A-Za-z0-9_.-]{1,100}$`}}
}

func (l list[V]) schema() schema {
	many := schema{"type": "array", "minItems": 1, "items": l.item.schema()}
	if l.single {
		return schema{"anyOf": []schema{l.item.schema(), many}}
	}
	return many
}

func (w word) schema() schema {
	s := schema{"type": "string", "pattern": `\S`}
	if w.pattern != "" {
		return orVariable(schema{"type": "string", "pattern": w.pattern})
	}
	return s
}

func (c choice[V]) schema() schema {
	var all []string
	for _, o := range c.options {
		if o.usable() {
			all = append(all, o.word)
		}
	}
	return orVariable(schema{"enum": all})
}

func (boolean) schema() schema { return orVariable(schema{"type": "boolean"}) }

func (c count) schema() schema {
	return orVariable(schema{"type": "integer", "minimum": c.least, "maximum": c.most})
}

func (span) schema() schema {
	return orVariable(schema{"type": "string", "pattern": `^([0-9]+d)?([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))*$`})
}

func (size) schema() schema {
	return orVariable(schema{"type": "string", "pattern": `^[0-9]+(B|kB|KiB|MB|MiB|GB|GiB)$`})
}
