package shape

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

// Leaf is embedded in shapes without nested keys.
type Leaf struct{}

func (Leaf) Keys() []Meta { return nil }

// Text returns the scalar at p, with environment variables expanded.
func (d *Decoder) Text(p *Place, want string) (string, bool) {
	n := p.Value()
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.WrongType(*p, want)
		return "", false
	}
	if p.Node.Line == 0 || !strings.Contains(n.Value, "${") {
		return n.Value, true
	}
	p.Raw = n.Value
	text, ok := d.expand(*p, n.Value)
	d.expansions[p.Path] = expansion{raw: n.Value, text: text}
	return text, ok
}

// Shown returns a value for use in a message. If the file refers to an environment variable, Shown returns
// the reference instead of the variable's value.
func (p Place) Shown(text string) string {
	if p.Raw != "" {
		text = p.Raw
	}
	return strconv.Quote(text)
}

// Word reads a text. A text that looks like a number or a boolean must be quoted.
type Word struct {
	Leaf
	// The field What describes the text in messages, such as "a path".
	What string
	// Check returns a reason and a remedy for an invalid text; nil without further checks.
	Check func(string) (reason, remedy string)
	// Pattern is a regular expression for the JSON Schema. Pattern covers a part of Check.
	Pattern string
	// Lines allows line breaks.
	Lines bool
}

func (w Word) Read(d *Decoder, p Place) (string, bool) {
	n := p.Value()
	s, ok := d.Text(&p, w.Words())
	if !ok {
		return "", false
	}
	if p.Node.Line > 0 && n.ShortTag() != "!!str" {
		d.WrongType(p, w.Words()+", in quotes")
		return "", false
	}
	reason, remedy := w.verdict(s)
	if reason != "" {
		d.Fault(p, reason, remedy)
	}
	return s, reason == ""
}

func (w Word) verdict(s string) (reason, remedy string) {
	switch {
	case strings.TrimSpace(s) == "":
		return "the text is empty", "give " + w.Words()
	case !w.Lines && strings.ContainsAny(s, "\n\r"):
		return "the text has a line break", "write it on one line"
	case w.Check != nil:
		return w.Check(s)
	}
	return "", ""
}

func (w Word) Words() string { return w.What }

// Path reads a file path, which may be relative to the policy's folder.
type Path struct {
	Word
	// Stdin allows the value "-", which means standard input.
	Stdin bool
}

func (s Path) Read(d *Decoder, p Place) (string, bool) {
	text, ok := s.Word.Read(d, p)
	if !ok || s.Stdin && text == Stdin || filepath.IsAbs(text) {
		return text, ok
	}
	return filepath.Join(d.dir, text), true
}

// Choice reads one of a fixed set of words.
type Choice[V any] struct {
	Leaf
	Options []Option[V]
}

// Option is a word of a choice. If Reason is not empty, the parser rejects the word with this reason.
type Option[V any] struct {
	Word           string
	Value          V
	Reason, Remedy string
}

func (o Option[V]) usable() bool { return o.Reason == "" }

func (c Choice[V]) Read(d *Decoder, p Place) (V, bool) {
	var none V
	s, ok := d.Text(&p, c.Words())
	if !ok {
		return none, false
	}
	for _, o := range c.Options {
		if o.Word != s {
			continue
		}
		if o.Reason != "" {
			d.Fault(p, o.Reason, o.Remedy)
		}
		return o.Value, o.usable()
	}
	remedy := "write " + c.Words()
	if near := NearestWord(s, c.suggestions()); near != "" && p.Raw == "" {
		remedy = fmt.Sprintf("did you mean %s?", near)
	}
	d.Fault(p, p.Shown(s)+" is unknown here", remedy)
	return none, false
}

// suggestions returns the words that an error may suggest. Rejected words are left out.
func (c Choice[V]) suggestions() []string {
	var some []string
	for _, o := range c.Options {
		if o.Reason == "" {
			some = append(some, o.Word)
		}
	}
	return some
}

func (c Choice[V]) Words() string {
	var now []string
	for _, o := range c.Options {
		if o.usable() {
			now = append(now, o.Word)
		}
	}
	if len(now) == 1 {
		return now[0]
	}
	return "one of " + strings.Join(now, ", ")
}

// Boolean is true or false.
type Boolean struct{ Leaf }

func (f Boolean) Read(d *Decoder, p Place) (bool, bool) {
	s, ok := d.Text(&p, f.Words())
	if !ok {
		return false, false
	}
	if s != "true" && s != "false" || d.Quoted(p) {
		d.Fault(p, p.Shown(s)+" is neither true nor false", "write true or false, without quotes")
		return false, false
	}
	return s == "true", true
}

func (Boolean) Words() string { return "true or false" }

// Quoted reports whether the file has a quoted text instead of a number or boolean.
func (d *Decoder) Quoted(p Place) bool {
	return p.Node.Line > 0 && p.Raw == "" && p.Value().ShortTag() == "!!str"
}

// Count reads an integer in a range.
type Count struct {
	Leaf
	Least, Most int64
}

func (c Count) Read(d *Decoder, p Place) (int, bool) {
	v, ok := c.read64(d, p)
	return int(v), ok
}

func (c Count) read64(d *Decoder, p Place) (int64, bool) {
	s, ok := d.Text(&p, c.Words())
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err != nil || d.Quoted(p):
		d.Fault(p, p.Shown(s)+" is not a whole number", "write "+c.Words()+", without quotes")
		return 0, false
	case v < c.Least || v > c.Most:
		d.Fault(p, p.Shown(s)+" is out of range", "write "+c.Words())
		return 0, false
	}
	return v, true
}

func (c Count) Words() string {
	if c.Least == c.Most {
		return strconv.FormatInt(c.Least, 10)
	}
	return fmt.Sprintf("a whole number, %d to %d", c.Least, c.Most)
}

// Count64 reads an int64 in a range.
type Count64 struct{ Count }

func (c Count64) Read(d *Decoder, p Place) (int64, bool) { return c.read64(d, p) }

// OneIn reads a share such as 1/1000 and returns its denominator.
type OneIn struct {
	Leaf
	Most uint64
}

func (s OneIn) Read(d *Decoder, p Place) (int, bool) {
	text, ok := d.Text(&p, s.Words())
	if !ok {
		return 0, false
	}
	digits, found := strings.CutPrefix(text, "1/")
	n, err := strconv.ParseUint(digits, 10, 63)
	switch {
	case !found || err != nil || digits[0] == '0':
		d.Fault(p, p.Shown(text)+" is not a share", "write "+s.Words())
		return 0, false
	case n > s.Most:
		d.Fault(p, p.Shown(text)+" is out of range", "write "+s.Words())
		return 0, false
	}
	return int(n), true
}

func (s OneIn) Words() string { return fmt.Sprintf("1/N, N from 1 to %d", s.Most) }

// Span reads a duration in a range.
type Span struct {
	Leaf
	Least, Most time.Duration
}

func (s Span) Read(d *Decoder, p Place) (time.Duration, bool) {
	text, ok := d.Text(&p, s.Words())
	if !ok {
		return 0, false
	}
	v, ok := ParseSpan(text)
	switch {
	case !ok:
		d.Fault(p, p.Shown(text)+" is not a duration", "write a number with its unit, as 500ms, 30s, 5m, 2h or 30d")
		return 0, false
	case v < s.Least || v > s.Most:
		d.Fault(p, p.Shown(text)+" is out of range", "write "+s.Words())
		return 0, false
	}
	return v, true
}

func (s Span) Words() string {
	return fmt.Sprintf("a duration, %s to %s", legible.Span(s.Least), legible.Span(s.Most))
}

// Size reads a number of bytes in a range.
type Size struct {
	Leaf
	Least, Most int64
}

func (s Size) Read(d *Decoder, p Place) (int64, bool) {
	text, ok := d.Text(&p, s.Words())
	if !ok {
		return 0, false
	}
	v, ok := parseSize(text)
	switch {
	case !ok:
		d.Fault(p, p.Shown(text)+" is not a size", "write a whole number with its unit, as 512KiB, 64MiB or 1GiB")
		return 0, false
	case v < s.Least || v > s.Most:
		d.Fault(p, p.Shown(text)+" is out of range", "write "+s.Words())
		return 0, false
	}
	return v, true
}

func (s Size) Words() string {
	return fmt.Sprintf("a size, %s to %s", ShowSize(s.Least), ShowSize(s.Most))
}

// Day is 24 hours.
const Day = 24 * time.Hour

// ParseSpan parses a duration such as "500ms", "1h30m", "30d" or "1d12h". Every number needs a unit.
func ParseSpan(text string) (time.Duration, bool) {
	days, rest, found := strings.Cut(text, "d")
	if !found {
		days, rest = "0", text
	}
	n, err := strconv.ParseUint(days, 10, 32)
	if err != nil || n > uint64(math.MaxInt64/Day) || found && strings.HasPrefix(rest, "-") {
		return 0, false
	}
	whole := time.Duration(n) * Day
	if rest == "" {
		return whole, found
	}
	part, err := time.ParseDuration(rest)
	if err != nil || strings.ContainsAny(rest[:1], "+-") || !endsInUnit(rest) || whole > math.MaxInt64-part {
		return 0, false
	}
	return whole + part, true
}

// endsInUnit rejects the text "0", which time.ParseDuration accepts without a unit.
func endsInUnit(text string) bool {
	last := text[len(text)-1]
	return last < '0' || last > '9'
}

// sizeUnit is a suffix such as MiB, with the number of bytes of the unit.
type sizeUnit struct {
	suffix string
	bytes  int64
}

// sizeUnits returns the units in the order in which the parser tries suffixes.
func sizeUnits() []sizeUnit {
	return []sizeUnit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1}}
}

// parseSize parses a size such as "64MiB", "500kB" or "12B". Every number needs a unit.
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

// ShowSize formats a number of bytes like a size in a policy.
func ShowSize(n int64) string {
	for _, u := range sizeUnits() {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.suffix)
		}
	}
	return fmt.Sprintf("%dB", n)
}

// Stdin is the path that means standard input.
const Stdin = "-"
