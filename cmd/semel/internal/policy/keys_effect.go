package policy

// The table of a consumer's business effect.

func effectShape() object[Effect] {
	return object[Effect]{fields: []field[Effect]{
		key(meta{name: "kind", required: true, doc: "Which kind it is. See [effects](#effects)."},
			effectKindWord(), func(e *Effect) *EffectKind { return &e.Kind }),
		key(meta{name: "says", required: true, doc: "What a second one would do, in a sentence for whoever decides at night whether a message may run again."},
			word{what: "a sentence"}, func(e *Effect) *string { return &e.Says }),
	}}
}

func effectKindWord() choice[EffectKind] {
	var c choice[EffectKind]
	for _, k := range effectKinds() {
		c.options = append(c.options, option[EffectKind]{word: string(k.kind), value: k.kind})
	}
	return c
}
