package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/legible"
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

func (s fingerprintShape) schema() schema {
	return schema{"anyOf": []schema{{"enum": []string{"body", "none"}}, s.selectors().schema()}}
}

func versionShape() object[Version] {
	return object[Version]{fields: []field[Version]{
		key(meta{name: "stream", required: true, doc: "The selector of what the versions are counted for, as `body:/order`; a list makes a composite. Streams of two sources never meet."},
			list[string]{item: selector(streamSelector), single: true}, func(v *Version) *[]string { return &v.Stream }),
		key(meta{name: "number", required: true, doc: "The selector of the version, which the producer counts for each stream: a whole number from 1 to 2^63 - 2."},
			selector(numberSelector), func(v *Version) *string { return &v.Number }),
		key(meta{name: "start", def: "1", doc: "The version that a stream begins with, or `first_seen`: the first that is met of it. A smaller one that comes later is discarded."},
			beginShape{}, func(v *Version) *VersionStart { return &v.Start }),
		key(meta{name: "on_gap", def: "park", doc: "What becomes of a version for whose predecessor it was waited in vain."},
			words("park"), func(v *Version) *string { return &v.onGap }),
		key(meta{name: "gap_deadline", def: legible.Span(consumer.DefaultGap), doc: "How long a version waits in the store's inbox for the one before it. Then it is parked as `gap`, and still freed when that comes."},
			span{least: time.Second, most: 365 * day}, func(v *Version) *time.Duration { return &v.GapDeadline }),
		key(meta{name: "gap_cap", doc: "How many versions ahead of its stream's next a version may wait, whether those between are missing or wait, too; any number, unless it is set. One further ahead is parked as `gap` at once, and still freed when its turn comes."},
			count64{count{least: 1, most: 1_000_000_000}}, func(v *Version) *int64 { return &v.GapCap }),
		key(meta{name: "missing", def: "park", doc: "What becomes of a message without a stream or a version, or with one that is no whole number from 1."},
			endings(park(), deadLetter(), halt()), func(v *Version) *consumer.Action { return &v.Missing }),
	}}
}

// beginShape is a version, or first_seen.
type beginShape struct{ leaf }

// firstSeen is the word for a stream that begins with what is met first.
const firstSeen = "first_seen"

func (s beginShape) read(d *decoder, p place) (VersionStart, bool) {
	text, ok := d.text(&p, s.words())
	if !ok || text == firstSeen {
		return VersionStart{FirstSeen: ok}, ok
	}
	number, err := strconv.ParseInt(text, 10, 64)
	switch {
	case nearestWord(text, []string{firstSeen}) != "" && p.raw == "":
		d.fault(p, p.shown(text)+" is unknown here", "did you mean "+firstSeen+"?")
	case err != nil || number < 1 || number > identity.MaxVersion || text != strconv.FormatInt(number, 10) || d.quoted(p):
		d.fault(p, p.shown(text)+" is no version that a stream begins with", "write "+s.words()+", without quotes")
	default:
		return VersionStart{Number: number}, true
	}
	return VersionStart{}, false
}

func (beginShape) words() string { return firstSeen + ", or a whole number from 1" }

func (beginShape) schema() schema {
	return orVariable(schema{"anyOf": []schema{{"const": firstSeen}, {"type": "integer", "minimum": 1}}})
}

func dedupShape() object[Dedup] {
	return object[Dedup]{fields: []field[Dedup]{
		key(meta{name: "table", required: true, doc: "The table, as `public.processed_messages`. It needs a unique key of exactly the id, and the columns for consumer and source if they are named."},
			word{what: "the name of a table"}, func(t *Dedup) *string { return &t.Table }),
		key(meta{name: "columns", required: true, doc: "Its columns, in the spelling of the catalogue."},
			dedupColumnsShape(), func(t *Dedup) *DedupColumns { return &t.Columns }),
		key(meta{name: "values", doc: "What further columns of a new row get, such as `{status: done}`; also the consumer's own, if it is not its name."},
			valuesShape{}, func(t *Dedup) *map[string]string { return &t.Values }),
	}}
}

func dedupColumnsShape() object[DedupColumns] {
	column := word{what: "the name of a column"}
	return object[DedupColumns]{fields: []field[DedupColumns]{
		key(meta{name: "id", required: true, doc: "The id: text, varchar, uuid, bytea, bigint, integer or smallint. A message whose id it cannot hold has no usable identity."},
			column, func(c *DedupColumns) *string { return &c.ID }),
		key(meta{name: "consumer", doc: "The consumer's name, as part of the key. Without it, one consumer alone may use the table."},
			column, func(c *DedupColumns) *string { return &c.Consumer }),
		key(meta{name: "source", doc: "The producer's name, as part of the key. Without it, `identity.source` is a constant or absent."},
			column, func(c *DedupColumns) *string { return &c.Source }),
		key(meta{name: "processed_at", doc: "The time, where it has no default."},
			column, func(c *DedupColumns) *string { return &c.ProcessedAt }),
	}}
}

// valuesShape is a mapping of columns to texts.
type valuesShape struct{ leaf }

func (s valuesShape) read(d *decoder, p place) (map[string]string, bool) {
	if p.value().Kind != yaml.MappingNode {
		d.wrongType(p, s.words())
		return nil, false
	}
	all := map[string]string{}
	ok := true
	for name, at := range d.entries(p) {
		d.note(at.place)
		if name == "" {
			d.faultKey(at, fmt.Sprintf("%q is no column", name), "name a column of the table")
			ok = false
		}
		text, good := d.text(&at.place, "a text")
		all[name], ok = text, ok && good
	}
	return all, ok
}

func (valuesShape) words() string { return "a mapping of columns to texts" }

func (valuesShape) schema() schema {
	return schema{"type": "object", "additionalProperties": schema{"type": []string{"string", "number", "boolean"}}}
}

// filterShape is a mapping of conditions: type, or header:NAME, to the values of
// which a message must have one.
type filterShape struct{ leaf }

// headerCondition begins the key of a condition on a header.
const headerCondition = "header:"

func (s filterShape) read(d *decoder, p place) (consumer.Filter, bool) {
	var filter consumer.Filter
	before := d.found()
	if p.value().Kind != yaml.MappingNode {
		d.wrongType(p, s.words())
		return filter, false
	}
	for name, at := range d.entries(p) {
		header, isHeader := strings.CutPrefix(name, headerCondition)
		if name != "type" && (!isHeader || header == "") {
			d.unknownKey(p, at, name, []string{"type"}, []string{"type", "header:NAME"}, nil)
			continue
		}
		d.note(at.place)
		values, _ := s.values().read(d, at.place)
		if !isHeader {
			filter.Types = values
			continue
		}
		if filter.Headers == nil {
			filter.Headers = map[string][]string{}
		}
		filter.Headers[header] = values
	}
	if d.found() > before {
		return filter, false
	}
	reason, remedy := split(filter.Validate(), "write each header once")
	if reason == "" && len(filter.Types) == 0 && len(filter.Headers) == 0 {
		reason, remedy = "it has no condition", "write type: [TYPE], or header:NAME: [VALUE], or leave it out"
	}
	if reason != "" {
		d.fault(p, reason, remedy)
	}
	return filter, reason == ""
}

func (filterShape) values() list[string] {
	return list[string]{item: word{what: "a text"}, single: true}
}

func (filterShape) words() string { return "a mapping of type and header:NAME to lists of values" }

func (s filterShape) schema() schema {
	return schema{"type": "object", "minProperties": 1, "additionalProperties": s.values().schema(),
		"propertyNames": schema{"pattern": `^(type|header:.+)$`}}
}

func onFilteredWord() choice[consumer.OnFiltered] {
	return choice[consumer.OnFiltered]{options: []option[consumer.OnFiltered]{
		{word: "skip", value: consumer.OnFilteredSkip},
		{word: "park", value: consumer.OnFilteredPark},
		{word: "dead_letter", value: consumer.OnFilteredDeadLetter},
	}}
}

// selectorPattern is what an editor knows of selectors.
const selectorPattern = `^((key|topic|type|subject|time|id|source|partition|offset)\??|header:.+|body:(/.*)?\??|const:.*)$`

// selector is a text that says where a value is found in a message. check, if
// any, says whether it may stand here; every selector must also be one.
func selector(check func(text string, s identity.Selector) error) word {
	return word{what: "a selector", pattern: selectorPattern, check: func(text string) (reason, remedy string) {
		s, err := identity.ParseSelector(text)
		if err == nil && check != nil {
			err = check(text, s)
		}
		return split(err, "see docs/policy.md for the selectors")
	}}
}

// idSelector refuses what makes no identity. A constant, or what many messages
// share, by itself is a matter of the whole list.
func idSelector(text string, s identity.Selector) error {
	if s.Constant() {
		return nil
	}
	return identity.By(text, "id").Trusted().Validate() // unknown here: trusted beside it
}

// sourceSelector refuses what is no name of a producer.
func sourceSelector(text string, _ identity.Selector) error {
	return identity.By("id").From(text).Trusted().Validate()
}

// typeSelector refuses what differs from message to message.
func typeSelector(text string, s identity.Selector) error {
	if s.Unique() {
		return fmt.Errorf("%q cannot be a type: it finds another value in each message; name the place of the type, as header:event-type or body:/type", text)
	}
	return nil
}

// streamSelector refuses what does not name what versions are counted for.
func streamSelector(text string, s identity.Selector) error {
	if s.Coordinate() || s.Optional() {
		return fmt.Errorf("%q cannot name a stream, which is what messages are about, and which each names itself; write what the versions are counted for, as body:/order", text)
	}
	return nil
}

// numberSelector refuses what is no version.
func numberSelector(text string, s identity.Selector) error {
	switch {
	case s.Constant():
		return fmt.Errorf("%q cannot be a version: it stands still; name what the producer counts for each stream, as body:/version", text)
	case s.Coordinate():
		return fmt.Errorf("%q cannot be a version: it is the broker's, and has gaps; name what the producer counts for each stream, as body:/version", text)
	case s.Time():
		return fmt.Errorf("%q cannot be a version: after a time nobody knows the next; name what the producer counts for each stream, as body:/version", text)
	case s.Optional():
		return fmt.Errorf("%q: what becomes of a message without a version is a key of its own; leave the question mark out, and write missing: park", text)
	}
	return nil
}

// contentSelector refuses what differs between copies of a message.
func contentSelector(text string, s identity.Selector) error {
	if s.Constant() {
		return nil
	}
	return identity.FingerprintOf(text).Validate()
}

// split cuts the library's errors, which name the remedy behind a semicolon.
func split(err error, otherwise string) (reason, remedy string) {
	if err == nil {
		return "", ""
	}
	reason, remedy, found := strings.Cut(err.Error(), "; ")
	if !found {
		remedy = otherwise
	}
	return reason, remedy
}
