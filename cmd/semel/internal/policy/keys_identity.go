package policy

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// The tables of strategy, identity and fingerprint.

func strategyShape() object[Strategy] {
	return object[Strategy]{
		short: strategyWord(),
		fields: []field[Strategy]{
			key(meta{name: "marker", doc: "A marker commits with the effect."},
				boolean{}, func(s *Strategy) *bool { return &s.Marker }),
			key(meta{name: "natural", doc: "The effect is idempotent by nature; no marker is written. Says why late copies do no harm."},
				pointer[Natural]{naturalShape()}, func(s *Strategy) **Natural { return &s.Natural }),
			key(meta{name: "business_key", doc: "A unique constraint of the effect decides: its violation is a duplicate, any other an error. Alone or beside the marker."},
				pointer[BusinessKey]{businessKeyShape()}, func(s *Strategy) **BusinessKey { return &s.BusinessKey }),
			key(meta{name: "inbox", doc: "A marker and a row with the message commit with the effect; with `settle: after_receipt` they commit first, the broker is settled, and a worker applies the effect."},
				boolean{}, func(s *Strategy) *bool { return &s.Inbox }),
			later[Strategy]("lease", "Claims with lease and fencing token, for effects elsewhere."),
		}}
}

func strategyWord() choice[Strategy] {
	return notYetAvailable(choice[Strategy]{options: []option[Strategy]{
		{word: "marker", value: Strategy{Marker: true}},
		{word: "inbox", value: Strategy{Inbox: true}},
		{word: "natural", reason: "natural does not say why late copies do no harm",
			remedy: "write strategy: {natural: {order: irrelevant}}, or natural: {because: \"…\"}"},
		{word: "business_key", reason: "business_key does not name its constraint",
			remedy: "write strategy: {business_key: {constraint: \"payments.id\"}}"},
		{word: "version", reason: "versions stand beside a marker, which what waits for an earlier one needs",
			remedy: "write strategy: marker, and at the consumer version: {stream: \"body:/order\", number: \"body:/version\"}"},
	}}, "lease")
}

func naturalShape() object[Natural] {
	return object[Natural]{
		oneOf: []string{"order", "because"},
		fields: []field[Natural]{
			key(meta{name: "order", doc: "Copies and reordering change nothing."},
				words("irrelevant"), func(n *Natural) *string { return &n.Order }),
			key(meta{name: "because", doc: "The reason in your words, as \"version guard in the statement\"."},
				word{what: "a reason"}, func(n *Natural) *string { return &n.Because }),
		}}
}

func businessKeyShape() object[BusinessKey] {
	return object[BusinessKey]{fields: []field[BusinessKey]{
		key(meta{name: "constraint", required: true, doc: "The unique constraint by its name in PostgreSQL, as `invoices_number_key`; on SQLite `table.column`, several joined by \", \"."},
			word{what: "the name of a constraint"}, func(b *BusinessKey) *string { return &b.Constraint }),
	}}
}

func identityShape() object[Identity] {
	return object[Identity]{fields: []field[Identity]{
		key(meta{name: "id", required: true, doc: "The selector of the id; a list makes a business key of several fields."},
			list[string]{item: selector(idSelector), single: true}, func(i *Identity) *[]string { return &i.ID }),
		key(meta{name: "source", doc: "The selector of the producer's name. Two sources never hide each other's messages."},
			selector(sourceSelector), func(i *Identity) *string { return &i.Source }),
		later[Identity]("former", "A former identity that is marked too, while it changes."),
		later[Identity]("broker", "The broker's own id, for producers that send nothing: `redelivery_only`."),
	}}
}

// fingerprintShape is body, none or selectors.
type fingerprintShape struct{ leaf }

func (s fingerprintShape) read(d *decoder, p place) (Fingerprint, bool) {
	if p.value().Kind == yaml.ScalarNode {
		text, ok := d.text(&p, s.words())
		switch {
		case !ok:
			return Fingerprint{}, false
		case text == "body" || text == "none":
			return Fingerprint{None: text == "none"}, true
		case !strings.Contains(text, ":"):
			d.fault(p, p.shown(text)+" is not "+s.words(), "write body, none, or a list of selectors")
			return Fingerprint{}, false
		}
	}
	all, ok := s.selectors().read(d, p)
	return Fingerprint{Selectors: all}, ok
}

func (fingerprintShape) selectors() list[string] {
	return list[string]{item: selector(contentSelector), single: true}
}

func (fingerprintShape) words() string { return "body, none, a selector or a list of selectors" }
