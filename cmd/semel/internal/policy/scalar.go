package policy

import (
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/semel-go/semel/internal/legible"
	"go.yaml.in/yaml/v4"
)

// leaf is a value without keys below it.
type leaf struct{}

func (leaf) keys() []meta { return nil }

// text returns the scalar at p with the environment read in.
func (d *decoder) text(p *place, want string) (string, bool) {
	n := p.value()
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.wrongType(*p, want)
		return "", false
	}
	if p.node.Line == 0 || !strings.Contains(n.Value, "${") {
		return n.Value, true
	}
	p.raw = n.Value
	text, ok := d.expand(*p, n.Value)
	d.expanded[p.path] = expansion{raw: n.Value, text: text}
	return text, ok
}

// shown is a value for a message: what the file says, never what the
// environment says.
func (p place) shown(text string) string {
	if p.raw != "" {
		text = p.raw
	}
	return strconv.Quote(text)
}

// word is a text. Numbers and booleans need quotes.
type word struct {
	leaf
	// what it is, for messages: "a path".
	what string
	// check, when not nil, returns a reason and a remedy.
	check func(string) (reason, remedy string)
	// pattern, for the schema, is an expression that says some of what check does.
	pattern string
	// lines allows line breaks.
	lines bool
}

func (w word) read(d *decoder, p place) (string, bool) {
	n := p.value()
	s, ok := d.text(&p, w.words())
	if !ok {
		return "", false
	}
	if p.node.Line > 0 && n.ShortTag() != "!!str" {
		d.wrongType(p, w.words()+", in quotes")
		return "", false
	}
	reason, remedy := w.verdict(s)
	if reason != "" {
		d.fault(p, reason, remedy)
	}
	return s, reason == ""
}

func (w word) verdict(s string) (reason, remedy string) {
	switch {
	case strings.TrimSpace(s) == "":
		return "the text is empty", "give " + w.words()
	case !w.lines && strings.ContainsAny(s, "\n\r"):
		return "the text has a line break", "write it on one line"
	case w.check != nil:
		return w.check(s)
	}
	return "", ""
}

func (w word) words() string { return w.what }

// path is a file's path, resolved from the policy's folder.
type path struct {
	word
	// stdin allows "-".
	stdin bool
}

func (s path) read(d *decoder, p place) (string, bool) {
	text, ok := s.word.read(d, p)
	if !ok || s.stdin && text == Stdin || filepath.IsAbs(text) {
		return text, ok
	}
	return filepath.Join(d.dir, text), true
}

// choice is one of a closed set of words.
type choice[V any] struct {
	leaf
	options []option[V]
}

// option is a word of a choice. One with a reason is refused for it.
type option[V any] struct {
	word           string
	value          V
	reason, remedy string
}

func (o option[V]) usable() bool { return o.reason == "" }

func (c choice[V]) read(d *decoder, p place) (V, bool) {
	var none V
	s, ok := d.text(&p, c.words())
	if !ok {
		return none, false
	}
	for _, o := range c.options {
		if o.word != s {
			continue
		}
		if o.reason != "" {
			d.fault(p, o.reason, o.remedy)
		}
		return o.value, o.usable()
	}
	remedy := "write " + c.words()
	if near := nearestWord(s, c.meant()); near != "" && p.raw == "" {
		remedy = fmt.Sprintf("did you mean %s?", near)
	}
	d.fault(p, p.shown(s)+" is unknown here", remedy)
	return none, false
}

// meant are the words that may be suggested: none that is refused itself.
func (c choice[V]) meant() []string {
	var some []string
	for _, o := range c.options {
		if o.reason == "" {
			some = append(some, o.word)
		}
	}
	return some
}

func (c choice[V]) words() string {
	var now []string
	for _, o := range c.options {
		if o.usable() {
			now = append(now, o.word)
		}
	}
	if len(now) == 1 {
		return now[0]
	}
	return "one of " + strings.Join(now, ", ")
}

// boolean is true or false.
type boolean struct{ leaf }

func (f boolean) read(d *decoder, p place) (bool, bool) {
	s, ok := d.text(&p, f.words())
	if !ok {
		return false, false
	}
	if s != "true" && s != "false" || d.quoted(p) {
		d.fault(p, p.shown(s)+" is neither true nor false", "write true or false, without quotes")
		return false, false
	}
	return s == "true", true
}

func (boolean) words() string { return "true or false" }

// quoted reports whether a text stands where a number or boolean belongs.
func (d *decoder) quoted(p place) bool {
	return p.node.Line > 0 && p.raw == "" && p.value().ShortTag() == "!!str"
}

// count is an integer in a range.
type count struct {
	leaf
	least, most int64
}

func (c count) read(d *decoder, p place) (int, bool) {
	v, ok := c.read64(d, p)
	return int(v), ok
}

func (c count) read64(d *decoder, p place) (int64, bool) {
	s, ok := d.text(&p, c.words())
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil || d.quoted(p):
		d.fault(p, p.shown(s)+" is not a whole number", "write "+c.words()+", without quotes")
		return 0, false
	case v < c.least || v > c.most:
		d.fault(p, p.shown(s)+" is out of range", "write "+c.words())
		return 0, false
	}
	return v, true
}

func (c count) words() string {
	if c.least == c.most {
		return strconv.FormatInt(c.least, 10)
	}
	return fmt.Sprintf("a whole number, %d to %d", c.least, c.most)
}

// count64 is count for an int64.
type count64 struct{ count }

func (c count64) read(d *decoder, p place) (int64, bool) { return c.read64(d, p) }

// span is a duration in a range.
type span struct {
	leaf
	least, most time.Duration
}

func (s span) read(d *decoder, p place) (time.Duration, bool) {
	text, ok := d.text(&p, s.words())
	if !ok {
		return 0, false
	}
	v, ok := parseSpan(text)
	switch {
	case !ok:
		d.fault(p, p.shown(text)+" is not a duration", "write a number with its unit, as 500ms, 30s, 5m, 2h or 30d")
		return 0, false
	case v < s.least || v > s.most:
		d.fault(p, p.shown(text)+" is out of range", "write "+s.words())
		return 0, false
	}
	return v, true
}

func (s span) words() string {
	return fmt.Sprintf("a duration, %s to %s", legible.Span(s.least), legible.Span(s.most))
}

// size is a number of bytes in a range.
type size struct {
	leaf
	least, most int64
}

func (s size) read(d *decoder, p place) (int64, bool) {
	text, ok := d.text(&p, s.words())
	if !ok {
		return 0, false
	}
	v, ok := parseSize(text)
	switch {
	case !ok:
		d.fault(p, p.shown(text)+" is not a size", "write a whole number with its unit, as 512KiB, 64MiB or 1GiB")
		return 0, false
	case v < s.least || v > s.most:
		d.fault(p, p.shown(text)+" is out of range", "write "+s.words())
		return 0, false
	}
	return v, true
}

func (s size) words() string {
	return fmt.Sprintf("a size, %s to %s", showSize(s.least), showSize(s.most))
}

const day = 24 * time.Hour

// parseSpan reads "500ms", "1h30m", "30d", "1d12h". A number needs its unit.
func parseSpan(text string) (time.Duration, bool) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		days, rest = "0", text
	}
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil || n > uint64(math.MaxInt64/day) || found && strings.HasPrefix(rest, "-") {
		return 0, false
	}
	whole := time.Duration(n) * day
	if rest == "" {
		return whole, found
	}
	part, err := time.ParseDuration(rest)
	if err != nil || strings.ContainsAny(rest[:1], "+-") || !endsInUnit(rest) || whole > math.MaxInt64-part {
		return 0, false
	}
	return whole + part, true
}

// endsInUnit refuses the bare "0" that time.ParseDuration accepts.
func endsInUnit(text string) bool {
	last := text[len(text)-1]
	return last < '0' || last > '9'
}

// sizeUnit is a suffix and what it multiplies by.
type sizeUnit struct {
	suffix string
	bytes  int64
}

// sizeUnits are in the order in which suffixes are tried.
func sizeUnits() []sizeUnit {
	return []sizeUnit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}
}

// parseSize reads "64MiB", "500kB", "12B". A number needs its unit.
func parseSize(text string) (int64, bool) {
	for _, u := range sizeUnits() {
		digits, found := strings.CutSuffix(text, u.suffix)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || int64(n) > math.MaxInt64/u.bytes {
			return 0, false
		}
		return int64(n) * u.bytes, true
	}
	return 0, false
}

func showSize(n int64) string {
	for _, u := range sizeUnits() {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.suffix)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// Stdin is the path that means standard input.
const Stdin = "-"
