package policy

import (
	"strconv"
	"time"

	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/legible"
)

// The table of a consumer's versions.

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
