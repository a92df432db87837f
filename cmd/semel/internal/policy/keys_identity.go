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
			key(meta{name: "inbox", doc: "A marker and a row with the message commit with the effect; with `ack: after_receipt` they commit first, the broker is settled, and a worker applies the effect."},
				boolean{}, func(s *Strategy) *bool { return &s.Inbox }),
			key(meta{name: "lease", doc: "For effects elsewhere, with `handler: {http: …}` or `{kafka: …}`: the message is received into the store's inbox and its broker settled; then it is claimed for a lease, the other side is called while no transaction is open, and the claim is completed under its token. The call happens at least once, one at a time, with the same key each time."},
				boolean{}, func(s *Strategy) *bool { return &s.Lease }),
		}}
}

func strategyWord() choice[Strategy] {
	return choice[Strategy]{options: []option[Strategy]{
		{word: "marker", value: Strategy{Marker: true}},
		{word: "inbox", value: Strategy{Inbox: true}},
		{word: "lease", value: Strategy{Lease: true}},
		{word: "natural", reason: "natural does not say why late copies do no harm",
			remedy: "write strategy: {natural: {order: irrelevant}}, or natural: {because: \"…\"}"},
		{word: "business_key", reason: "business_key does not name its constraint",
			remedy: "write strategy: {business_key: {constraint: \"payments.id\"}}"},
		{word: "version", reason: "versions stand beside a marker, which what waits for an earlier one needs",
			remedy: "write strategy: marker, and at the consumer version: {stream: \"body:/order\", number: \"body:/version\"}"},
	}}
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
		key(meta{name: "trusted", def: "false", doc: "`true` accepts an `id` whose name says that it differs between copies of a message, or is shared by messages, as `header:x-attempt-id` or `header:date`: the producer is known to set it once for a message."},
			boolean{}, func(i *Identity) *bool { return &i.Trusted }),
		key(meta{name: "previous", doc: "What the identity was before, while it changes: messages are marked under it, too, and are new only where both are. Needed when another identity than the recorded one is written here; remove it when no message comes again that was processed before, and `semel identity retire` has said so. Not beside `version`, `dedup`, `retention: {daily_partitions: true}` and `fingerprint: none`."},
			pointer[PreviousIdentity]{previousShape()}, func(i *Identity) **PreviousIdentity { return &i.Previous }),
		later[Identity]("broker", "The broker's own id, for producers that send nothing: `redelivery_only`."),
	}}
}

func previousShape() object[PreviousIdentity] {
	return object[PreviousIdentity]{fields: []field[PreviousIdentity]{
		key(meta{name: "id", required: true, doc: "What `identity.id` was."},
			list[string]{item: selector(idSelector), single: true}, func(i *PreviousIdentity) *[]string { return &i.ID }),
		key(meta{name: "source", doc: "What `identity.source` was."},
			selector(sourceSelector), func(i *PreviousIdentity) *string { return &i.Source }),
		key(meta{name: "unfingerprinted", def: "park", doc: "What becomes of a message whose former identity is marked without a fingerprint, or with one of another rule, so that nobody can tell whether it is a copy: `park` makes it a conflict, which ends as `on_conflict` says; `duplicate` takes it for a copy."},
			choice[bool]{options: []option[bool]{{word: "park", value: false}, {word: "duplicate", value: true}}},
			func(i *PreviousIdentity) *bool { return &i.TrustUnfingerprinted }),
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
