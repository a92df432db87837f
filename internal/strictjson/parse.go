package strictjson

import (
	"bytes"
	"slices"
)

// parser is the state of one Parse.
type parser struct {
	Document
	at int
	// names are the name nodes of the objects that are open, the innermost last.
	names []uint32
}

// Parse reads one JSON text. Its error is an *Error.
func Parse(source []byte) (*Document, error) {
	if len(source) > maxLength {
		return nil, &Error{maxLength, "longer than 2 GiB"}
	}
	p := parser{Document: Document{source: source, nodes: make([]node, 0, min(8+len(source)/20, 1024))}}
	if err := p.value(1); err != nil {
		return nil, err
	}
	p.space()
	if p.at < len(source) {
		return nil, p.fault("text after the value")
	}
	return &p.Document, nil
}

// Check reports whether source is one JSON text, as Parse does.
func Check(source []byte) error {
	_, err := Parse(source)
	return err
}

func (p *parser) fault(problem string) error { return &Error{p.at, problem} }

func (p *parser) space() {
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
func (p *parser) peek() byte {
	p.space()
	if p.at == len(p.source) {
		return 0
	}
	return p.source[p.at]
}

func (p *parser) value(depth int) error {
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

func (p *parser) noValue() error {
	if p.at == len(p.source) {
		return p.fault("the text ends where a value must stand")
	}
	if bytes.HasPrefix(p.source[p.at:], []byte("\xef\xbb\xbf")) {
		return p.fault("a byte-order mark")
	}
	return p.fault("no value begins here")
}

func (p *parser) word(word string, k Kind) error {
	if !bytes.HasPrefix(p.source[p.at:], []byte(word)) {
		return p.fault("no value begins here")
	}
	p.add(k, p.at, p.at+len(word))
	return nil
}

// add appends a node and moves behind it.
func (p *parser) add(k Kind, start, end int) int {
	p.nodes = append(p.nodes, node{start: uint32(start), end: uint32(end), kind: k})
	p.at = end
	return len(p.nodes) - 1
}

func (p *parser) nested(depth int, k Kind) error {
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
	p.nodes[self].end = uint32(p.at)
	p.nodes[self].next = uint32(len(p.nodes))
	return err
}

func (p *parser) elements(depth int) error {
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
func (p *parser) more(closing byte) (bool, error) {
	c := p.peek()
	if c != ',' && c != closing {
		return false, p.fault("neither a comma nor the closing bracket")
	}
	p.at++
	return c == ',', nil
}

func (p *parser) members(self, depth int) error {
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

func (p *parser) member(depth int) error {
	if p.peek() != '"' {
		return p.fault("a member's name must stand here")
	}
	p.names = append(p.names, uint32(len(p.nodes)))
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
func (p *parser) sortNames(self, base int) error {
	names := p.names[base:]
	slices.SortFunc(names, func(a, b uint32) int { return bytes.Compare(p.textOf(a), p.textOf(b)) })
	for i := 1; i < len(names); i++ {
		if bytes.Equal(p.textOf(names[i-1]), p.textOf(names[i])) {
			second := max(p.nodes[names[i-1]].start, p.nodes[names[i]].start)
			return &Error{int(second), "a repeated member name"}
		}
	}
	p.nodes[self].extra = uint32(len(p.order))
	p.nodes[self].size = uint32(len(names))
	p.order = append(p.order, names...)
	p.names = p.names[:base]
	return nil
}
