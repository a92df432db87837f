package policy

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/kafka"
	"go.yaml.in/yaml/v4"
)

// The kinds of values that a Kafka source brings.

const topicPattern = `^[A-Za-z0-9._-]{1,249}$`

func topicName() word {
	return word{what: "the name of a topic", pattern: topicPattern, check: badTopic}
}

func badTopic(s string) (reason, remedy string) {
	strange := func(r rune) bool {
		return !strings.ContainsRune("._-", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}
	if len(s) > 249 || s == "." || s == ".." || strings.ContainsFunc(s, strange) {
		return "this cannot be the name of a topic", "use letters, digits, '.', '_' and '-', at most 249 of them"
	}
	return "", ""
}

func badPattern(s string) (reason, remedy string) {
	if _, err := kafka.CompilePattern(s); err != nil {
		return "this is no regular expression: " + err.Error(), `write one in the syntax of RE2, as "orders\\..*"`
	}
	return "", ""
}

// brokersShape is a list of texts, each of one broker or of several.
type brokersShape struct{ leaf }

func (brokersShape) list() list[string] {
	return list[string]{item: word{what: "a broker as host:port", check: badBrokers}, single: true}
}

func (s brokersShape) read(d *decoder, p place) ([]string, bool) {
	texts, ok := s.list().read(d, p)
	var all []string
	for _, text := range texts {
		for broker := range strings.SplitSeq(text, ",") {
			all = append(all, strings.TrimSpace(broker))
		}
	}
	return all, ok
}

func (s brokersShape) words() string  { return s.list().words() }
func (s brokersShape) schema() schema { return s.list().schema() }

func badBrokers(text string) (reason, remedy string) {
	for broker := range strings.SplitSeq(text, ",") {
		host, port, err := net.SplitHostPort(strings.TrimSpace(broker))
		n, notNumber := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || notNumber != nil || n == 0 {
			return "this is no broker", `write "host:port", as "127.0.0.1:9092"`
		}
	}
	return "", ""
}

// encryption is a mapping, or true or false.
type encryption struct{ object[TLS] }

func (s encryption) read(d *decoder, p place) (*TLS, bool) {
	v, ok := s.object.read(d, p)
	if v.off {
		return nil, ok
	}
	return &v, ok
}

// encrypted is encryption without options.
type encrypted struct{ boolean }

func (s encrypted) read(d *decoder, p place) (TLS, bool) {
	on, ok := s.boolean.read(d, p)
	return TLS{off: !on}, ok
}

// instant is a moment with its zone.
type instant struct{ leaf }

func (s instant) read(d *decoder, p place) (time.Time, bool) {
	text, ok := d.text(&p, s.words())
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		d.fault(p, p.shown(text)+" is no time", "write "+s.words())
	}
	return at, err == nil
}

func (instant) words() string { return "a time with its zone, as 2026-01-01T00:00:00Z" }

func (instant) schema() schema {
	return orVariable(schema{"type": "string", "pattern": `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`})
}

// instantOrDate is a moment with its zone, or a date, which begins at midnight UTC.
type instantOrDate struct{ leaf }

func (s instantOrDate) read(d *decoder, p place) (time.Time, bool) {
	text, ok := d.text(&p, s.words())
	if !ok {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		at, err = time.Parse(time.DateOnly, text)
	}
	switch {
	case err != nil:
		d.fault(p, p.shown(text)+" is no time", "write "+s.words())
	case at.Year() < firstYear:
		d.fault(p, fmt.Sprintf("%s is before %d", p.shown(text), firstYear), fmt.Sprintf("write %d-01-01 for all time", firstYear))
		return at, false
	}
	return at, err == nil
}

// firstYear keeps the zero time, which means that no time was set, from being written.
const firstYear = 1970

func (instantOrDate) words() string {
	return "a date, as 2026-01-01, or a time with its zone, as 2026-01-01T00:00:00Z"
}

func (instantOrDate) schema() schema {
	return orVariable(schema{"type": "string", "pattern": `^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))?$`})
}

// secret is a text that may not stand in the file, and is not shown.
type secret struct {
	leaf
	// noFile: none can be named in its place.
	noFile bool
}

// secretPattern says of a text what isReference does.
const secretPattern = `^\$\{[A-Za-z_][A-Za-z0-9_]*\}$`

func (s secret) read(d *decoder, p place) (string, bool) {
	n := p.value()
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.wrongType(p, s.words())
		return "", false
	}
	if !isReference(n.Value) {
		remedy := "write " + s.words()
		if !s.noFile {
			remedy += ", or name a file that holds it"
		}
		d.fault(p, "a secret stands in the policy", remedy)
		return "", false
	}
	text, ok := d.text(&p, s.words())
	if ok && text == "" {
		d.fault(p, "the environment variable is empty", "set it to the secret")
		return "", false
	}
	return text, ok
}

// isReference reports whether text is a variable of the environment, without a
// default, and nothing beside it.
func isReference(text string) bool {
	name, opened := strings.CutPrefix(text, "${")
	name, closed := strings.CutSuffix(name, "}")
	return opened && closed && isVariable(name)
}

func (secret) words() string { return "${NAME} alone, a variable of the environment" }

func (secret) schema() schema { return schema{"type": "string", "pattern": secretPattern} }
