package strictjson

import (
	"encoding/binary"
	"io"
	"slices"
)

// WriteCanonical writes the value in a form that is equal for equal values,
// whatever their white space, member order, escapes and number format, and
// different for different ones. The form is a sequence of tagged values: n t f
// for null, true and false; d and s with a length for numbers (as exact
// decimals) and strings; [ and { up to an e, an object's names sorted by their
// bytes. w must not fail, as a hash.Hash does not.
func (v Value) WriteCanonical(w io.Writer) {
	d := v.document
	c := canonical{Document: d, w: w, buffer: slices.Grow(d.scratch[:0], 2*flushAt), decimal: d.decimal}
	c.value(v.index)
	c.flush()
	d.scratch, d.decimal = c.buffer, c.decimal
}

// flushAt is how many bytes are collected before they are written.
const flushAt = 1024

type canonical struct {
	*Document
	w      io.Writer
	buffer []byte
	// decimal is room for one number.
	decimal []byte
}

func (c *canonical) flush() {
	_, _ = c.w.Write(c.buffer) // a hash never returns an error
	c.buffer = c.buffer[:0]
}

func (c *canonical) value(i uint32) {
	if len(c.buffer) >= flushAt {
		c.flush()
	}
	n := &c.nodes[i]
	switch n.kind {
	case Null, Bool:
		c.buffer = append(c.buffer, c.source[n.start])
	case Number:
		c.number(n)
	case String:
		c.bytes('s', c.textOf(i))
	case Array:
		c.buffer = append(c.buffer, '[')
		for e := i + 1; e < n.next; e = c.after(e) {
			c.value(e)
		}
		c.buffer = append(c.buffer, 'e')
	case Object:
		c.buffer = append(c.buffer, '{')
		for _, name := range c.namesOf(i) {
			c.bytes('s', c.textOf(name))
			c.value(name + 1)
		}
		c.buffer = append(c.buffer, 'e')
	}
}

func (c *canonical) number(n *node) {
	c.decimal = AppendDecimal(c.decimal[:0], c.source[n.start:n.end])
	c.bytes('d', c.decimal)
}

// bytes writes a tag, a length and the bytes; long ones past the buffer.
func (c *canonical) bytes(tag byte, b []byte) {
	c.buffer = binary.AppendUvarint(append(c.buffer, tag), uint64(len(b)))
	if len(b) < flushAt {
		c.buffer = append(c.buffer, b...)
		if len(c.buffer) >= flushAt {
			c.flush()
		}
		return
	}
	c.flush()
	_, _ = c.w.Write(b)
}
