package strictjson

import "bytes"

// Parser parses text after text in the same memory. It is used by one
// goroutine; its zero value is ready.
type Parser struct {
	document Document
	source   []byte
	// frames are the arrays and objects that are open, the innermost last.
	frames []frame
	// names are those of the objects that are open, the innermost object's last.
	names []name
	// orders are the orders in which names of earlier objects were found; nil
	// as long as it would not pay. again says that this is not the first text.
	orders *orders
	again  bool
}

// frame is an array or object that is open.
type frame struct {
	// self is its node, base the first of its names.
	self, base uint32
	// closing is the byte that ends it.
	closing byte
}

// mostKept is for how many nodes a parser keeps room from text to text.
const mostKept = 8192

// Parse reads one JSON text. Its error is an *Error. The document is valid
// until the next Parse.
func (p *Parser) Parse(source []byte) (*Document, error) {
	if len(source) > maxLength {
		return nil, &Error{maxLength, "longer than 2 GiB"}
	}
	p.reset(source)
	end, fault := p.text()
	if fault != nil {
		return nil, fault
	}
	if i, _ := peek(source, end); i < len(source) {
		return nil, &Error{i, "text after the value"}
	}
	return &p.document, nil
}

// reset makes room for what a usual text of this length holds, which is a node
// in six bytes, and for no more than a text that is not JSON deserves.
func (p *Parser) reset(source []byte) {
	d := &p.document
	room := min(8+len(source)/6, 1024)
	p.again = cap(d.nodes) > 0
	if cap(d.nodes) < room || cap(d.nodes) > mostKept || cap(d.text) > 16*mostKept || cap(d.decimal) > 16*mostKept || cap(p.names) > mostKept {
		*p = Parser{
			document: Document{nodes: make([]node, 0, room), order: make([]uint32, 0, room)},
			names:    make([]name, 0, min(room/2, 64)),
			orders:   p.orders,
			again:    p.again,
		}
	}
	d.source = source[:len(source):len(source)]
	d.nodes, d.text = d.nodes[:0], d.text[:0]
	d.order = append(d.order[:0], 0)
	p.source, p.frames, p.names = d.source, p.frames[:0], p.names[:0]
}

// Forget keeps nothing of the text that was parsed last from the collector.
func (p *Parser) Forget() { p.reset(nil) }

// Parse reads one JSON text. Its error is an *Error.
func Parse(source []byte) (*Document, error) { return new(Parser).Parse(source) }

// Check reports whether source is one JSON text, as Parse does.
func Check(source []byte) error {
	_, err := Parse(source)
	return err
}

// peek skips space and returns the next byte, 0 at the end.
func peek(source []byte, i int) (int, byte) {
	if i = skipSpace(source, i); i == len(source) {
		return i, 0
	}
	return i, source[i]
}

// at is the byte at i, 0 at the end. What is above a space peek need not see:
// compact JSON has no space, and at is inlined where peek is not.
func at(source []byte, i int) byte {
	if i < len(source) {
		return source[i]
	}
	return 0
}

// text reads the value and returns its end. It keeps what is open in a list
// and not on the stack.
func (p *Parser) text() (i int, fault *Error) {
	for {
		c := at(p.source, i)
		if c <= ' ' {
			i, c = peek(p.source, i)
		}
		switch c {
		case '"':
			i, fault = p.str(i)
		case '{', '[':
			var empty bool
			if i, empty, fault = p.open(i, c); fault == nil && !empty {
				continue
			}
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			i, fault = p.number(i)
		default:
			i, fault = p.word(i, c)
		}
		if fault != nil {
			return i, fault
		}
		if i, fault = p.behind(i); fault != nil || len(p.frames) == 0 {
			return i, fault
		}
	}
}

// add appends a node.
func (p *Parser) add(start, end int) *node {
	p.document.nodes = append(p.document.nodes, node{start: uint32(start), end: uint32(end)})
	return &p.document.nodes[len(p.document.nodes)-1]
}

// word reads true, false and null, and says what is wrong where no value begins.
func (p *Parser) word(i int, c byte) (int, *Error) {
	word := ""
	switch c {
	case 't':
		word = "true"
	case 'f':
		word = "false"
	case 'n':
		word = "null"
	}
	rest := p.source[i:]
	switch {
	case word != "" && len(rest) >= len(word) && string(rest[:len(word)]) == word:
		p.add(i, i+len(word))
		return i + len(word), nil
	case len(rest) == 0:
		return i, &Error{i, "the text ends where a value must stand"}
	case bytes.HasPrefix(rest, []byte("\xef\xbb\xbf")):
		return i, &Error{i, "a byte-order mark"}
	}
	return i, &Error{i, "no value begins here"}
}

// open reads the bracket at i and, of an object, the first name.
func (p *Parser) open(i int, bracket byte) (next int, empty bool, fault *Error) {
	if len(p.frames) == MaxDepth {
		return i, false, &Error{i, "nested deeper than 1000"}
	}
	f := frame{uint32(len(p.document.nodes)), uint32(len(p.names)), bracket + 2} // in ASCII
	n := p.add(i, i+1)
	next, c := peek(p.source, i+1)
	if c == f.closing {
		n.end, n.next = uint32(next+1), f.self+1
		return next + 1, true, nil
	}
	p.frames = append(p.frames, f)
	if bracket == '{' {
		next, fault = p.name(next)
	}
	return next, false, fault
}

// behind reads on behind a value: it closes what ends there, up to the comma,
// and of an object, the next name.
func (p *Parser) behind(i int) (int, *Error) {
	for len(p.frames) > 0 {
		f := p.frames[len(p.frames)-1]
		c := at(p.source, i)
		if c <= ' ' {
			i, c = peek(p.source, i)
		}
		switch c {
		case ',':
			if f.closing == '}' {
				return p.name(i + 1)
			}
			return i + 1, nil
		case f.closing:
			i++
			if fault := p.close(f, i); fault != nil {
				return i, fault
			}
		default:
			return i, &Error{i, "neither a comma nor the closing bracket"}
		}
	}
	return i, nil
}

// close ends the innermost array or object.
func (p *Parser) close(f frame, end int) *Error {
	n := &p.document.nodes[f.self]
	n.end, n.next = uint32(end), uint32(len(p.document.nodes))
	p.frames = p.frames[:len(p.frames)-1]
	if f.closing == ']' {
		return nil
	}
	n.extra = uint32(len(p.document.order))
	fault := p.order(p.names[f.base:])
	p.names = p.names[:f.base]
	return fault
}

// name reads a member's name and the colon.
func (p *Parser) name(start int) (int, *Error) {
	if at(p.source, start) != '"' {
		var c byte
		if start, c = peek(p.source, start); c != '"' {
			return start, &Error{start, "a member's name must stand here"}
		}
	}
	end, fault := p.str(start)
	if fault != nil {
		return end, fault
	}
	p.names = append(p.names, p.nameAt(start, end))
	if at(p.source, end) != ':' {
		var c byte
		if end, c = peek(p.source, end); c != ':' {
			return end, &Error{end, "a colon must stand here"}
		}
	}
	return end + 1, nil
}
