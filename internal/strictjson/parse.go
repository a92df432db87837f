package strictjson

import "bytes"

// Parser parses texts one after the other and reuses its memory. Only one goroutine may use a Parser at a
// time. The zero value is ready to use.
type Parser struct {
	document Document
	source   []byte
	// frames contains the open arrays and objects. The innermost array or object is the last element.
	frames []frame
	// names contains the names of the open objects. The names of the innermost object are the last elements.
	names []memberName
	// orderCache remembers the orders of names, or is nil as long as remembering is not worthwhile. The field reused is
	// true if the Parser has parsed a text before.
	orderCache *orders
	reused     bool
}

// frame is an open array or object.
type frame struct {
	// nodeIndex is the node of the array or object. firstName is the index of its first name in Parser.names.
	nodeIndex, firstName uint32
	// closing is the bracket that ends the array or object.
	closing byte
}

// mostKept is the maximum number of nodes whose memory a parser reuses for the next text.
const mostKept = 8192

// Parse parses one JSON text. The document is valid until the next Parse. The error is an
// *Error.
func (p *Parser) Parse(source []byte) (*Document, error) {
	if len(source) > maxLength {
		return nil, &Error{maxLength, "longer than 2 GiB"}
	}
	p.reset(source)
	end, fault := p.parseText()
	if fault != nil {
		return nil, fault
	}
	if i, _ := peek(source, end); i < len(source) {
		return nil, &Error{i, "text after the value"}
	}
	return &p.document, nil
}

// reset allocates memory for a typical text of the given length, with one node per six bytes. A limit avoids large
// allocations for texts that are not JSON.
func (p *Parser) reset(source []byte) {
	d := &p.document
	room := min(8+len(source)/6, 1024)
	p.reused = cap(d.nodes) > 0
	if cap(d.nodes) < room || cap(d.nodes) > mostKept || cap(d.decodedText) > 16*mostKept || cap(d.decimal) > 16*mostKept || cap(p.names) > mostKept {
		*p = Parser{
			document:   Document{nodes: make([]node, 0, room), order: make([]uint32, 0, room)},
			names:      make([]memberName, 0, min(room/2, 64)),
			orderCache: p.orderCache,
			reused:     p.reused,
		}
	}
	d.source = source[:len(source):len(source)]
	d.nodes, d.decodedText = d.nodes[:0], d.decodedText[:0]
	d.order = append(d.order[:0], 0)
	p.source, p.frames, p.names = d.source, p.frames[:0], p.names[:0]
}

// Forget drops all references to the last text, so that it can be garbage collected.
func (p *Parser) Forget() { p.reset(nil) }

// Parse parses one JSON text. The error is an *Error.
func Parse(source []byte) (*Document, error) { return new(Parser).Parse(source) }

// Check returns the error that Parse would return for source.
func Check(source []byte) error {
	_, err := Parse(source)
	return err
}

// peek skips space and returns the next byte and its index. At the end of the text, the byte is 0.
func peek(source []byte, i int) (int, byte) {
	if i = skipSpace(source, i); i == len(source) {
		return i, 0
	}
	return i, source[i]
}

// byteAt returns the byte at i, or 0 at the end. In contrast to peek, byteAt does not skip space, and
// the compiler inlines it. The function peek is needed only where a space occurs; compact JSON has no spaces.
func byteAt(source []byte, i int) byte {
	if i < len(source) {
		return source[i]
	}
	return 0
}

// parseText parses the value of the text and returns its end. Open arrays and objects are stored in a list and
// not on the stack.
func (p *Parser) parseText() (i int, fault *Error) {
	for {
		c := byteAt(p.source, i)
		if c <= ' ' {
			i, c = peek(p.source, i)
		}
		switch c {
		case '"':
			i, fault = p.parseString(i)
		case '{', '[':
			var empty bool
			if i, empty, fault = p.openFrame(i, c); fault == nil && !empty {
				continue
			}
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			i, fault = p.parseNumber(i)
		default:
			i, fault = p.parseWord(i, c)
		}
		if fault != nil {
			return i, fault
		}
		if i, fault = p.parseAfterValue(i); fault != nil || len(p.frames) == 0 {
			return i, fault
		}
	}
}

func (p *Parser) add(start, end int) *node {
	p.document.nodes = append(p.document.nodes, node{start: uint32(start), end: uint32(end)})
	return &p.document.nodes[len(p.document.nodes)-1]
}

// parseWord parses true, false and null. If no value begins at i, parseWord returns an error.
func (p *Parser) parseWord(i int, c byte) (int, *Error) {
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
		return i, &Error{i, "the text ends where a value is expected"}
	case bytes.HasPrefix(rest, []byte("\xef\xbb\xbf")):
		return i, &Error{i, "a byte-order mark"}
	}
	return i, &Error{i, "no value begins here"}
}

// openFrame parses the opening bracket at i. For an object, openFrame also parses the first name.
func (p *Parser) openFrame(i int, bracket byte) (next int, empty bool, fault *Error) {
	if len(p.frames) == MaxDepth {
		return i, false, &Error{i, "nested deeper than 1000"}
	}
	f := frame{uint32(len(p.document.nodes)), uint32(len(p.names)), bracket + 2} // in ASCII
	n := p.add(i, i+1)
	next, c := peek(p.source, i+1)
	if c == f.closing {
		n.end, n.next = uint32(next+1), f.nodeIndex+1
		return next + 1, true, nil
	}
	p.frames = append(p.frames, f)
	if bracket == '{' {
		next, fault = p.parseName(next)
	}
	return next, false, fault
}

// parseAfterValue parses the text after a value: closing brackets up to a comma and, in an object, the next name.
func (p *Parser) parseAfterValue(i int) (int, *Error) {
	for len(p.frames) > 0 {
		f := p.frames[len(p.frames)-1]
		c := byteAt(p.source, i)
		if c <= ' ' {
			i, c = peek(p.source, i)
		}
		switch c {
		case ',':
			if f.closing == '}' {
				return p.parseName(i + 1)
			}
			return i + 1, nil
		case f.closing:
			i++
			if fault := p.closeFrame(f, i); fault != nil {
				return i, fault
			}
		default:
			return i, &Error{i, "neither a comma nor the closing bracket"}
		}
	}
	return i, nil
}

// closeFrame ends the innermost array or object.
func (p *Parser) closeFrame(f frame, end int) *Error {
	n := &p.document.nodes[f.nodeIndex]
	n.end, n.next = uint32(end), uint32(len(p.document.nodes))
	p.frames = p.frames[:len(p.frames)-1]
	if f.closing == ']' {
		return nil
	}
	n.extra = uint32(len(p.document.order))
	fault := p.order(p.names[f.firstName:])
	p.names = p.names[:f.firstName]
	return fault
}

// parseName parses a member name and the colon.
func (p *Parser) parseName(start int) (int, *Error) {
	if byteAt(p.source, start) != '"' {
		var c byte
		if start, c = peek(p.source, start); c != '"' {
			return start, &Error{start, "a member name is expected here"}
		}
	}
	end, fault := p.parseString(start)
	if fault != nil {
		return end, fault
	}
	p.names = append(p.names, p.nameAt(start, end))
	if byteAt(p.source, end) != ':' {
		var c byte
		if end, c = peek(p.source, end); c != ':' {
			return end, &Error{end, "a colon is expected here"}
		}
	}
	return end + 1, nil
}
