package strictjson

import (
	"bytes"
	"slices"
)

// Parser parses text after text in the same memory. It is used by one
// goroutine; its zero value is ready.
type Parser struct {
	document Document
	source   []byte
	at       int
	// names are the name nodes of the objects that are open, the innermost last.
	names []uint32
}

// mostKept is for how many nodes a parser keeps room from text to text.
const mostKept = 4096

// Parse reads one JSON text. Its error is an *Error. The document is valid
// until the next Parse.
func (p *Parser) Parse(source []byte) (*Document, error) {
	if len(source) > maxLength {
		return nil, &Error{maxLength, "longer than 2 GiB"}
	}
	p.reset(source)
	if err := p.value(1); err != nil {
		return nil, err
	}
	p.space()
	if p.at < len(source) {
		return nil, p.fault("text after the value")
	}
	return &p.document, nil
}

// reset makes room for what a usual text of this length holds, which is a node
// in six bytes, and for no more than a text that is not JSON deserves.
func (p *Parser) reset(source []byte) {
	d := &p.document
	room := min(8+len(source)/6, 1024)
	if cap(d.nodes) < room || cap(d.nodes) > mostKept || cap(d.text) > 16*mostKept {
		*p = Parser{
			document: Document{nodes: make([]node, 0, room), order: make([]uint32, 0, room/2)},
			names:    make([]uint32, 0, 32),
		}
	}
	d.source, d.nodes, d.order, d.text = source, d.nodes[:0], d.order[:0], d.text[:0]
	p.source, p.at, p.names = source, 0, p.names[:0]
}

// Parse reads one JSON text. Its error is an *Error.
func Parse(source []byte) (*Document, error) { return new(Parser).Parse(source) }

// Check reports whether source is one JSON text, as Parse does.
func Check(source []byte) error {
	_, err := Parse(source)
	return err
}

func (p *Parser) fault(problem string) error { return &Error{p.at, problem} }

func (p *Parser) space() {
	for p.at < len(p.source) {
		switch p.source[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// peek skips space and returns the next byte, 0 at the end.
func (p *Parser) peek() byte {
	p.space()
	if p.at == len(p.source) {
		return 0
	}
	return p.source[p.at]
}

func (p *Parser) value(depth int) error {
	switch c := p.peek(); c {
	case '{':
		return p.nested(depth, Object)
	case '[':
		return p.nested(depth, Array)
	case '"':
		return p.str()
	case 't':
		return p.word("true", Bool)
	case 'f':
		return p.word("false", Bool)
	case 'n':
		return p.word("null", Null)
	default:
		if c == '-' || isDigit(c) {
			return p.number()
		}
		return p.noValue()
	}
}

func (p *Parser) noValue() error {
	if p.at == len(p.source) {
		return p.fault("the text ends where a value must stand")
	}
	if bytes.HasPrefix(p.source[p.at:], []byte("\xef\xbb\xbf")) {
		return p.fault("a byte-order mark")
	}
	return p.fault("no value begins here")
}

func (p *Parser) word(word string, k Kind) error {
	if !bytes.HasPrefix(p.source[p.at:], []byte(word)) {
		return p.fault("no value begins here")
	}
	p.add(k, p.at, p.at+len(word))
	return nil
}

// add appends a node and moves behind it.
func (p *Parser) add(k Kind, start, end int) int {
	p.document.nodes = append(p.document.nodes, node{start: uint32(start), end: uint32(end), kind: k})
	p.at = end
	return len(p.document.nodes) - 1
}

func (p *Parser) nested(depth int, k Kind) error {
	if depth > MaxDepth {
		return p.fault("nested deeper than 1000")
	}
	self := p.add(k, p.at, p.at+1)
	var err error
	if k == Object {
		err = p.members(self, depth)
	} else {
		err = p.elements(depth)
	}
	p.document.nodes[self].end = uint32(p.at)
	p.document.nodes[self].next = uint32(len(p.document.nodes))
	return err
}

func (p *Parser) elements(depth int) error {
	if p.peek() == ']' {
		p.at++
		return nil
	}
	for {
		if err := p.value(depth + 1); err != nil {
			return err
		}
		if more, err := p.more(']'); !more {
			return err
		}
	}
}

// more steps over a comma (true) or the closing byte.
func (p *Parser) more(closing byte) (bool, error) {
	c := p.peek()
	if c != ',' && c != closing {
		return false, p.fault("neither a comma nor the closing bracket")
	}
	p.at++
	return c == ',', nil
}

func (p *Parser) members(self, depth int) error {
	base := len(p.names)
	if p.peek() == '}' {
		p.at++
		return nil
	}
	for {
		if err := p.member(depth); err != nil {
			return err
		}
		more, err := p.more('}')
		if err != nil {
			return err
		}
		if !more {
			return p.sortNames(self, base)
		}
	}
}

func (p *Parser) member(depth int) error {
	if p.peek() != '"' {
		return p.fault("a member's name must stand here")
	}
	p.names = append(p.names, uint32(len(p.document.nodes)))
	if err := p.str(); err != nil {
		return err
	}
	if p.peek() != ':' {
		return p.fault("a colon must stand here")
	}
	p.at++
	return p.value(depth + 1)
}

// sortNames files the names of the object that just ended, in order, and
// refuses a repeated one.
func (p *Parser) sortNames(self, base int) error {
	names := p.names[base:]
	slices.SortFunc(names, func(a, b uint32) int { return bytes.Compare(p.document.textOf(a), p.document.textOf(b)) })
	for i := 1; i < len(names); i++ {
		if bytes.Equal(p.document.textOf(names[i-1]), p.document.textOf(names[i])) {
			second := max(p.document.nodes[names[i-1]].start, p.document.nodes[names[i]].start)
			return &Error{int(second), "a repeated member name"}
		}
	}
	p.document.nodes[self].extra = uint32(len(p.document.order))
	p.document.nodes[self].size = uint32(len(names))
	p.document.order = append(p.document.order, names...)
	p.names = p.names[:base]
	return nil
}
