package strictjson

import (
	"encoding/binary"
	"io"
)

// WriteCanonical writes a canonical form of the value. Equal values have equal canonical forms, regardless of white
// space, member order, escapes and number format. Different values have different canonical forms. The canonical form
// is a sequence of tagged values: n, t and f for null, true and false; d and s with a length for numbers (as exact
// decimals) and strings; [ and { up to an e for arrays and objects, with the names of an object sorted by their bytes.
// The writer w must not return errors, like a hash.Hash.
func (v Value) WriteCanonical(w io.Writer) {
	d := v.document
	if d.scratch == nil {
		d.scratch = make([]byte, flushAt+slack)
	}
	c := canonical{Document: d, w: w, buffer: d.scratch}
	c.value(v.index)
	c.flush()
}

const (
	// flushAt is the number of bytes that are collected before they are written to w.
	flushAt = 1024
	// shortText is the maximum length of a text that is copied together with the bytes after it, so that the number of
	// copied bytes is fixed.
	shortText = 32
	// slack is larger than a short text with its tag and length, plus a bracket.
	slack = 64
)

type canonical struct {
	*Document
	w io.Writer
	// buffer always has at least slack free bytes after the used bytes.
	buffer []byte
	used   int
}

func (c *canonical) flush() {
	_, _ = c.w.Write(c.buffer[:c.used]) // a hash never returns an error
	c.used = 0
}

// byte writes one byte.
func (c *canonical) byte(b byte) {
	if c.used >= flushAt {
		c.flush()
	}
	c.buffer[c.used] = b
	c.used++
}

// value writes value i. value calls itself for each level of nesting.
func (c *canonical) value(i uint32) {
	n := &c.nodes[i]
	switch first := c.source[n.start]; first {
	case '"':
		c.text('s', c.textOf(i))
	case '{':
		c.byte('{')
		for _, name := range c.namesOf(i) {
			c.text('s', c.textOf(name))
			c.value(name + 1)
		}
		c.byte('e')
	case '[':
		c.byte('[')
		for e := i + 1; e < n.next; e = c.after(e) {
			c.value(e)
		}
		c.byte('e')
	case 'n', 't', 'f':
		c.byte(first)
	default:
		c.number(n)
	}
}

func (c *canonical) number(n *node) {
	number := c.source[n.start:n.end]
	if n.extra != plainInteger {
		c.decimal = AppendDecimal(c.decimal[:0], number)
		number = c.decimal
	}
	c.text('d', number)
}

// text writes a tag, a length and a text. Of a short text, the method text copies a fixed number of bytes. The copied
// bytes after the end of the text are overwritten later.
func (c *canonical) text(tag byte, text []byte) {
	if len(text) > shortText || cap(text) < shortText {
		c.anyText(tag, text)
		return
	}
	if c.used >= flushAt {
		c.flush()
	}
	room := c.buffer[c.used:]
	_ = room[2+shortText]
	room[0], room[1] = tag, byte(len(text))
	*(*[shortText]byte)(room[2:]) = *(*[shortText]byte)(text[:shortText])
	c.used += 2 + len(text)
}

// anyText does the same as the method text, for texts of any length. Long texts are not copied into the buffer.
func (c *canonical) anyText(tag byte, text []byte) {
	if c.used+len(text) >= flushAt {
		c.flush()
	}
	c.buffer[c.used] = tag
	c.used += 1 + binary.PutUvarint(c.buffer[c.used+1:], uint64(len(text)))
	if len(text) < flushAt {
		c.used += copy(c.buffer[c.used:], text)
		return
	}
	c.flush()
	_, _ = c.w.Write(text)
}
