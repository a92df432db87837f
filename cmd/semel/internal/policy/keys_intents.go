package policy

// SQLIntent is an effect elsewhere that a handler of statements writes down.
type SQLIntent struct {
	// To names a consumer of the policy that sends.
	To, Purpose, Type string
	// Recipient and Key are selectors; empty for none.
	Recipient, Key string
	// Body are the members of its body, in the file's order; none: the message's body.
	Body []Param
}

func intentShape() object[SQLIntent] {
	return object[SQLIntent]{fields: []field[SQLIntent]{
		key(meta{name: "to", required: true, doc: "The consumer that sends it: one without `from`, on the same store. See [intents](intents.md)."},
			word{what: "the name of a consumer"}, func(n *SQLIntent) *string { return &n.To }),
		key(meta{name: "purpose", required: true, doc: "What it is for, such as `confirmation`. Message, purpose and recipient make its id, and the key that the endpoint gets."},
			word{what: "a word"}, func(n *SQLIntent) *string { return &n.Purpose }),
		key(meta{name: "type", doc: "The `ce-type` of what the endpoint gets."},
			word{what: "a type"}, func(n *SQLIntent) *string { return &n.Type }),
		key(meta{name: "recipient", doc: "Whom it is for: a selector. It is the key of what is sent, too."},
			selector(nil), func(n *SQLIntent) *string { return &n.Recipient }),
		key(meta{name: "key", doc: "The `Idempotency-Key` that the endpoint gets, where it keeps a number of yours unique: a selector. Without it Semel makes one."},
			selector(nil), func(n *SQLIntent) *string { return &n.Key }),
		key(meta{name: "body", doc: "The members of a JSON object: a selector each. A value that is missing ends the message as `missing parameter`; with `?` behind the selector it is null. Without `body` it is the message's own."},
			paramsShape{}, func(n *SQLIntent) *[]Param { return &n.Body }),
	}}
}
