package policy

import (
	"net/url"
	"strconv"
	"strings"
)

// The table of traces.

// Traces say where the spans of `semel run` go.
type Traces struct {
	// OTLP is a URL of OTLP over HTTP, whole; empty: there are no spans.
	OTLP string
	// Ratio is the share of sampled traces that are recorded; 0: all.
	Ratio float64
}

func tracesShape() object[Traces] {
	return object[Traces]{
		fields: []field[Traces]{
			key(meta{name: "otlp", required: true, doc: "Where spans are sent, in OpenTelemetry's protocol over HTTP, as `http://127.0.0.1:4318`; without a path `/v1/traces`. What a collector asks for beside it, as a token, stands in the variables of the environment that OpenTelemetry names: `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_CERTIFICATE`."},
				otlpURL(), func(t *Traces) *string { return &t.OTLP }),
			key(meta{name: "ratio", doc: "Of the traces that their producers sampled, record this share, from 0.0001 to 1, chosen by the trace's id: who else takes this share takes the same ones. Without it all are recorded. A message whose producer did not sample it makes no span."},
				share{}, func(t *Traces) *float64 { return &t.Ratio }),
		},
	}
}

func otlpURL() word { return word{what: "a URL", check: badOTLP} }

func badOTLP(s string) (reason, remedy string) {
	const write = `write the collector's address, as "http://127.0.0.1:4318"`
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !portOf(u):
		return "this is no address of a collector", write
	case u.User != nil:
		return "a name or password in the address is shown where it fails", "give it by OTEL_EXPORTER_OTLP_HEADERS in the environment"
	case u.RawQuery != "" || u.Fragment != "":
		return "a collector's address has no query and no fragment", write
	}
	return "", ""
}

// portOf reports whether the port of an address, if it has one, is one.
func portOf(u *url.URL) bool {
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Port() == "" || err == nil && n > 0
}

// Endpoint is the whole URL.
func (t Traces) Endpoint() string {
	u, err := url.Parse(t.OTLP)
	if err == nil && strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
		return u.String()
	}
	return t.OTLP
}

// share is a number above 0, at most 1.
type share struct{ leaf }

// leastShare is the least share: one of 10,000.
const leastShare = 0.0001

func (s share) read(d *decoder, p place) (float64, bool) {
	text, ok := d.text(&p, s.words())
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || d.quoted(p) || !(v >= leastShare && v <= 1) {
		d.fault(p, p.shown(text)+" is no share", "write "+s.words()+", without quotes")
		return 0, false
	}
	return v, true
}

func (share) words() string { return "a number, 0.0001 to 1" }

func (share) schema() schema {
	return orVariable(schema{"type": "number", "minimum": leastShare, "maximum": 1})
}
