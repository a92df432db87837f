package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/versions"
	"go.yaml.in/yaml/v4"
)

// This file has the tables of strategy, identity and fingerprint.

func strategyShape() shape.Object[Strategy] {
	return shape.Object[Strategy]{
		Short: strategyWord(),
		Fields: []shape.Field[Strategy]{
			shape.Key(shape.Meta{Name: "marker", Doc: "A marker commits with the effect."},
				shape.Boolean{}, func(s *Strategy) *bool { return &s.Marker }),
			shape.Key(shape.Meta{Name: "natural", Doc: "The effect is idempotent by nature; no marker is written. The value is the reason why late copies are harmless."},
				shape.Optional[Natural](naturalShape()), func(s *Strategy) **Natural { return &s.Natural }),
			shape.Key(shape.Meta{Name: "business_key", Doc: "A unique constraint of your table decides: its violation means a duplicate; violations of other constraints are errors. Alone or with the marker."},
				shape.Optional[BusinessKey](businessKeyShape()), func(s *Strategy) **BusinessKey { return &s.BusinessKey }),
			shape.Key(shape.Meta{Name: "inbox", Doc: "A marker and a row with the message commit with the effect; with `ack: after_receipt` they commit first, the message is acked, and a worker applies the effect later."},
				shape.Boolean{}, func(s *Strategy) *bool { return &s.Inbox }),
			shape.Key(shape.Meta{Name: "lease", Doc: "For effects in other systems, with `handler: {http: …}` or `{kafka: …}`. The message is stored in the inbox and acked, then claimed for a lease. The call is made without an open transaction, and its outcome is recorded under the claim's token. The call happens at least once, one at a time, with the same idempotency key."},
				shape.Boolean{}, func(s *Strategy) *bool { return &s.Lease }),
		}}
}

func strategyWord() shape.Choice[Strategy] {
	return shape.Choice[Strategy]{Options: []shape.Option[Strategy]{
		{Word: "marker", Value: Strategy{Marker: true}},
		{Word: "inbox", Value: Strategy{Inbox: true}},
		{Word: "lease", Value: Strategy{Lease: true}},
		{Word: "natural", Reason: "natural needs a reason why late copies are harmless",
			Remedy: "write strategy: {natural: {order: irrelevant}}, or natural: {because: \"…\"}"},
		{Word: "business_key", Reason: "business_key does not name its constraint",
			Remedy: "write strategy: {business_key: {constraint: \"payments.id\"}}"},
		{Word: "version", Reason: "versions need a marker, because a version that waits for an earlier one is stored",
			Remedy: "write strategy: marker, and at the consumer version: {stream: \"body:/order\", number: \"body:/version\"}"},
	}}
}

func naturalShape() shape.Object[Natural] {
	return shape.Object[Natural]{
		OneOf: []string{"order", "because"},
		Fields: []shape.Field[Natural]{
			shape.Key(shape.Meta{Name: "order", Doc: "Copies and reordering change nothing."},
				words("irrelevant"), func(n *Natural) *string { return &n.Order }),
			shape.Key(shape.Meta{Name: "because", Doc: "The reason in your words, as \"version guard in the statement\"."},
				shape.Word{What: "a reason"}, func(n *Natural) *string { return &n.Because }),
		}}
}

func businessKeyShape() shape.Object[BusinessKey] {
	return shape.Object[BusinessKey]{Fields: []shape.Field[BusinessKey]{
		shape.Key(shape.Meta{Name: "constraint", Required: true, Doc: "The name of the unique constraint in PostgreSQL, such as `invoices_number_key`; on SQLite `table.column`, several joined by \", \"."},
			shape.Word{What: "the name of a constraint"}, func(b *BusinessKey) *string { return &b.Constraint }),
	}}
}

func identityShape() shape.Object[Identity] {
	return shape.Object[Identity]{Fields: []shape.Field[Identity]{
		shape.Key(shape.Meta{Name: "id", Required: true, Doc: "The selector of the id; a list makes a business key of several fields."},
			shape.List[string]{Item: selector(idSelector), Single: true}, func(i *Identity) *[]string { return &i.ID }),
		shape.Key(shape.Meta{Name: "source", Doc: "The selector of the producer's name. Equal ids of two sources are different identities."},
			selector(sourceSelector), func(i *Identity) *string { return &i.Source }),
		shape.Key(shape.Meta{Name: "trusted", Def: "false", Doc: "`true` accepts an `id` whose name suggests that it differs between copies or is shared by messages, such as `header:x-attempt-id` or `header:date`, because the producer sets it once for each message."},
			shape.Boolean{}, func(i *Identity) *bool { return &i.Trusted }),
		shape.Key(shape.Meta{Name: "previous", Doc: "The previous identity, during a change. A message gets a marker under both identities, and is new only if both identities are new. Required if the identity differs from the recorded identity. Remove this key when old messages no longer arrive, after `semel consumers identity retire`. Not with `version`, `dedup`, `retention: {daily_partitions: true}` and `fingerprint: none`."},
			shape.Optional[PreviousIdentity](previousShape()), func(i *Identity) **PreviousIdentity { return &i.Previous }),
		shape.Later[Identity]("broker", "The broker's own id, for producers that send nothing: `redelivery_only`."),
	}}
}

func previousShape() shape.Object[PreviousIdentity] {
	return shape.Object[PreviousIdentity]{Fields: []shape.Field[PreviousIdentity]{
		shape.Key(shape.Meta{Name: "id", Required: true, Doc: "The previous `identity.id`."},
			shape.List[string]{Item: selector(idSelector), Single: true}, func(i *PreviousIdentity) *[]string { return &i.ID }),
		shape.Key(shape.Meta{Name: "source", Doc: "The previous `identity.source`."},
			selector(sourceSelector), func(i *PreviousIdentity) *string { return &i.Source }),
		shape.Key(shape.Meta{Name: "unfingerprinted", Def: "park", Doc: "How a message ends if the marker of its previous identity has no comparable fingerprint, so that it is unknown whether it is a copy. `park`: as a conflict, by `on_conflict`; `duplicate`: as a copy."},
			shape.Choice[bool]{Options: []shape.Option[bool]{{Word: "park", Value: false}, {Word: "duplicate", Value: true}}},
			func(i *PreviousIdentity) *bool { return &i.TrustUnfingerprinted }),
	}}
}

// fingerprintShape describes body, none or selectors.
type fingerprintShape struct{ shape.Leaf }

func (s fingerprintShape) Read(d *shape.Decoder, p shape.Place) (Fingerprint, bool) {
	if p.Value().Kind == yaml.ScalarNode {
		text, ok := d.Text(&p, s.Words())
		switch {
		case !ok:
			return Fingerprint{}, false
		case text == "body" || text == "none":
			return Fingerprint{None: text == "none"}, true
		case !strings.Contains(text, ":"):
			d.Fault(p, p.Shown(text)+" is not "+s.Words(), "write body, none, or a list of selectors")
			return Fingerprint{}, false
		}
	}
	all, ok := s.selectors().Read(d, p)
	return Fingerprint{Selectors: all}, ok
}

func (fingerprintShape) selectors() shape.List[string] {
	return shape.List[string]{Item: selector(contentSelector), Single: true}
}

func (fingerprintShape) Words() string { return "body, none, a selector or a list of selectors" }

func (s fingerprintShape) Schema() shape.Schema {
	return shape.Schema{"anyOf": []shape.Schema{{"enum": []string{"body", "none"}}, s.selectors().Schema()}}
}

func versionShape() shape.Object[Version] {
	return shape.Object[Version]{Fields: []shape.Field[Version]{
		shape.Key(shape.Meta{Name: "stream", Required: true, Doc: "The selector of the stream, such as `body:/order`; a list makes a composite. Streams of different sources are different."},
			shape.List[string]{Item: selector(streamSelector), Single: true}, func(v *Version) *[]string { return &v.Stream }),
		shape.Key(shape.Meta{Name: "number", Required: true, Doc: "The selector of the version, a number that the producer counts for each stream: a whole number from 1 to 2^63 - 2."},
			selector(numberSelector), func(v *Version) *string { return &v.Number }),
		shape.Key(shape.Meta{Name: "start", Def: "1", Doc: "The first version of a stream, or `first_seen`: the first one that arrives. Smaller versions that arrive later are discarded."},
			beginShape{}, func(v *Version) *VersionStart { return &v.Start }),
		shape.Key(shape.Meta{Name: "on_gap", Def: "park", Doc: "How a version ends if its predecessor does not arrive in time."},
			words("park"), func(v *Version) *string { return &v.onGap }),
		shape.Key(shape.Meta{Name: "gap_deadline", Def: legible.Span(versions.DefaultGap), Doc: "How long a version waits in the inbox for its predecessor. Then it is parked as `gap`; if the predecessor still arrives, the version is processed."},
			shape.Span{Least: time.Second, Most: 365 * shape.Day}, func(v *Version) *time.Duration { return &v.GapDeadline }),
		shape.Key(shape.Meta{Name: "gap_cap", Doc: "How far ahead of the stream's next version a version may wait; default unlimited. A version further ahead is parked as `gap` immediately. If the missing versions arrive later, the parked version is still processed."},
			shape.Count64{Count: shape.Count{Least: 1, Most: 1_000_000_000}}, func(v *Version) *int64 { return &v.GapCap }),
		shape.Key(shape.Meta{Name: "missing", Def: "park", Doc: "How a message ends that has no stream, no version, or a version that is not a whole number from 1."},
			endings(park(), deadLetter(), halt()), func(v *Version) *consumer.Action { return &v.Missing }),
	}}
}

// beginShape reads the key begin: a version number, or the word first_seen.
type beginShape struct{ shape.Leaf }

// firstSeen is the value of begin for streams that start with the first version that arrives.
const firstSeen = "first_seen"

func (s beginShape) Read(d *shape.Decoder, p shape.Place) (VersionStart, bool) {
	text, ok := d.Text(&p, s.Words())
	if !ok || text == firstSeen {
		return VersionStart{FirstSeen: ok}, ok
	}
	number, err := strconv.ParseInt(text, 10, 64)
	switch {
	case shape.NearestWord(text, []string{firstSeen}) != "" && p.Raw == "":
		d.Fault(p, p.Shown(text)+" is unknown here", "did you mean "+firstSeen+"?")
	case err != nil || number < 1 || number > versions.Max || text != strconv.FormatInt(number, 10) || d.Quoted(p):
		d.Fault(p, p.Shown(text)+" cannot be the first version of a stream", "write "+s.Words()+", without quotes")
	default:
		return VersionStart{Number: number}, true
	}
	return VersionStart{}, false
}

func (beginShape) Words() string { return firstSeen + ", or a whole number from 1" }

func (beginShape) Schema() shape.Schema {
	return shape.OrVariable(shape.Schema{"anyOf": []shape.Schema{{"const": firstSeen}, {"type": "integer", "minimum": 1}}})
}

func dedupShape() shape.Object[Dedup] {
	return shape.Object[Dedup]{Fields: []shape.Field[Dedup]{
		shape.Key(shape.Meta{Name: "table", Required: true, Doc: "The table, such as `public.processed_messages`. It needs one unique key of exactly the id and the columns for consumer and source, if they are named."},
			shape.Word{What: "the name of a table"}, func(t *Dedup) *string { return &t.Table }),
		shape.Key(shape.Meta{Name: "columns", Required: true, Doc: "The columns of the table, spelled as in the catalogue."},
			dedupColumnsShape(), func(t *Dedup) *DedupColumns { return &t.Columns }),
		shape.Key(shape.Meta{Name: "values", Doc: "Values of other columns in new rows, such as `{status: done}`; also a value for the consumer column that differs from the consumer's name."},
			valuesShape{}, func(t *Dedup) *map[string]string { return &t.Values }),
	}}
}

func dedupColumnsShape() shape.Object[DedupColumns] {
	column := shape.Word{What: "the name of a column"}
	return shape.Object[DedupColumns]{Fields: []shape.Field[DedupColumns]{
		shape.Key(shape.Meta{Name: "id", Required: true, Doc: "The id: text, varchar, uuid, bytea, bigint, integer or smallint. A message whose id does not fit has no usable identity."},
			column, func(c *DedupColumns) *string { return &c.ID }),
		shape.Key(shape.Meta{Name: "consumer", Doc: "The column of the consumer's name, part of the key. Without it only one consumer may use the table."},
			column, func(c *DedupColumns) *string { return &c.Consumer }),
		shape.Key(shape.Meta{Name: "source", Doc: "The column of the producer's name, part of the key. Without it, `identity.source` must be a constant or absent."},
			column, func(c *DedupColumns) *string { return &c.Source }),
		shape.Key(shape.Meta{Name: "processed_at", Doc: "The column of the time, if it has no default."},
			column, func(c *DedupColumns) *string { return &c.ProcessedAt }),
	}}
}

// valuesShape describes a mapping of columns to texts.
type valuesShape struct{ shape.Leaf }

func (s valuesShape) Read(d *shape.Decoder, p shape.Place) (map[string]string, bool) {
	if p.Value().Kind != yaml.MappingNode {
		d.WrongType(p, s.Words())
		return nil, false
	}
	all := map[string]string{}
	ok := true
	for name, at := range d.Entries(p) {
		d.Note(at.Place)
		if name == "" {
			d.FaultKey(at, fmt.Sprintf("%q is not a column", name), "name a column of the table")
			ok = false
		}
		text, good := d.Text(&at.Place, "a text")
		all[name], ok = text, ok && good
	}
	return all, ok
}

func (valuesShape) Words() string { return "a mapping of columns to texts" }

func (valuesShape) Schema() shape.Schema {
	return shape.Schema{"type": "object", "additionalProperties": shape.Schema{"type": []string{"string", "number", "boolean"}}}
}

// filterShape describes a mapping of conditions (type, or header:NAME) to the accepted values.
type filterShape struct{ shape.Leaf }

// headerCondition is the prefix of a condition on a header.
const headerCondition = "header:"

func (s filterShape) Read(d *shape.Decoder, p shape.Place) (consumer.Filter, bool) {
	var filter consumer.Filter
	before := d.Found()
	if p.Value().Kind != yaml.MappingNode {
		d.WrongType(p, s.Words())
		return filter, false
	}
	for name, at := range d.Entries(p) {
		header, isHeader := strings.CutPrefix(name, headerCondition)
		if name != "type" && (!isHeader || header == "") {
			d.UnknownKey(p, at, name, []string{"type"}, []string{"type", "header:NAME"}, nil)
			continue
		}
		d.Note(at.Place)
		values, _ := s.values().Read(d, at.Place)
		if !isHeader {
			filter.Types = values
			continue
		}
		if filter.Headers == nil {
			filter.Headers = map[string][]string{}
		}
		filter.Headers[header] = values
	}
	if d.Found() > before {
		return filter, false
	}
	reason, remedy := split(filter.Validate(), "write each header once")
	if reason == "" && len(filter.Types) == 0 && len(filter.Headers) == 0 {
		reason, remedy = "it has no condition", "write type: [TYPE], or header:NAME: [VALUE], or remove it"
	}
	if reason != "" {
		d.Fault(p, reason, remedy)
	}
	return filter, reason == ""
}

func (filterShape) values() shape.List[string] {
	return shape.List[string]{Item: shape.Word{What: "a text"}, Single: true}
}

func (filterShape) Words() string { return "a mapping of type and header:NAME to lists of values" }

func (s filterShape) Schema() shape.Schema {
	return shape.Schema{"type": "object", "minProperties": 1, "additionalProperties": s.values().Schema(),
		"propertyNames": shape.Schema{"pattern": `^(type|header:.+)$`}}
}

func onFilteredWord() shape.Choice[consumer.OnFiltered] {
	return shape.Choice[consumer.OnFiltered]{Options: []shape.Option[consumer.OnFiltered]{
		{Word: "skip", Value: consumer.OnFilteredSkip},
		{Word: "park", Value: consumer.OnFilteredPark},
		{Word: "dead_letter", Value: consumer.OnFilteredDeadLetter},
	}}
}
