package strictjson

import (
	"bytes"
	"cmp"
	"slices"
)

// memberName is a member name of an object that is being parsed.
type memberName struct {
	// prefix is the result of prefixOf for the name. Most names have different prefixes, so their texts need
	// not be compared.
	prefix uint64
	// The field node is the node of the name. The field place is the position of the name in the object.
	node, place uint32
}

// nameAt returns the name that was just read. The span from start to end includes the quotes.
func (p *Parser) nameAt(start, end int) memberName {
	i := len(p.document.nodes) - 1
	if p.document.nodes[i].next != 0 {
		return memberName{prefix: prefixOf(p.document.textOf(uint32(i))), node: uint32(i)}
	}
	return memberName{prefix: prefixIn(p.source, start+1, end-1), node: uint32(i)}
}

// compareNames compares two names by their bytes. If the prefixes are equal, the texts are compared, because
// shorter names are padded with NULs, and names may contain NULs.
func (d *Document) compareNames(a, b memberName) int {
	if a.prefix != b.prefix {
		return cmp.Compare(a.prefix, b.prefix)
	}
	return bytes.Compare(d.textOf(a.node), d.textOf(b.node))
}

// order is called at the end of an object. It records the names of the object, sorted by their bytes, and rejects a
// repeated name. Names that are already sorted, and names whose sequence is remembered, are not sorted again. The check
// that names are ascending also finds repeated names.
func (p *Parser) order(names []memberName) *Error {
	d := &p.document
	d.order = append(d.order, uint32(len(names)))
	if d.isAscending(names) {
		for i := range names {
			d.order = append(d.order, names[i].node)
		}
		return nil
	}
	known := p.knownOrder(names)
	if known != nil && d.appendInOrder(names, *known) {
		return nil
	}
	if fault := d.sort(names); fault != nil {
		return fault
	}
	if known != nil {
		*known = keptOrder(*known, names)
	}
	for i := range names {
		d.order = append(d.order, names[i].node)
	}
	return nil
}

// isAscending reports whether each name is less than the next.
func (d *Document) isAscending(names []memberName) bool {
	for i := 1; i < len(names); i++ {
		if a, b := names[i-1], names[i]; a.prefix > b.prefix || (a.prefix == b.prefix && d.compareNames(a, b) >= 0) {
			return false
		}
	}
	return true
}

// appendInOrder records the names in the order that the parameter places gives. If the names are not ascending in this
// order, appendInOrder records nothing and returns false.
func (d *Document) appendInOrder(names []memberName, places []uint8) bool {
	if len(places) != len(names) {
		return false
	}
	before := len(d.order)
	last := names[places[0]]
	d.order = append(d.order, last.node)
	for _, place := range places[1:] {
		n := names[place]
		if last.prefix > n.prefix || (last.prefix == n.prefix && d.compareNames(last, n) >= 0) {
			d.order = d.order[:before]
			return false
		}
		d.order = append(d.order, n.node)
		last = n
	}
	return true
}

// fewNames is the maximum number of names that are sorted by insertion.
const fewNames = 24

// sort sorts names. If a name is repeated, sort returns an error at its second occurrence.
func (d *Document) sort(names []memberName) *Error {
	for i := range names {
		names[i].place = uint32(i)
	}
	if len(names) <= fewNames {
		d.sortFew(names)
	} else {
		d.cutShared(names)
		slices.SortFunc(names, func(a, b memberName) int {
			if a.prefix != b.prefix {
				return cmp.Compare(a.prefix, b.prefix)
			}
			return cmp.Or(d.compareNames(a, b), cmp.Compare(a.node, b.node))
		})
	}
	for i := 1; i < len(names); i++ {
		if a, b := names[i-1], names[i]; a.prefix == b.prefix && d.compareNames(a, b) == 0 {
			return &Error{int(d.nodes[b.node].start), "a repeated member name"}
		}
	}
	return nil
}

// cutShared computes the prefixes of names without the beginning that all names share, so that names such as
// order-0000001 have different prefixes.
func (d *Document) cutShared(names []memberName) {
	shared := d.textOf(names[0].node)
	for _, n := range names[1:] {
		text := d.textOf(n.node)
		same := 0
		for same < min(len(text), len(shared)) && text[same] == shared[same] {
			same++
		}
		if shared = shared[:same]; same == 0 {
			return
		}
	}
	for i := range names {
		names[i].prefix = prefixOf(d.textOf(names[i].node)[len(shared):])
	}
}

// sortFew is a stable insertion sort.
func (d *Document) sortFew(names []memberName) {
	for i := 1; i < len(names); i++ {
		n, k := names[i], i
		for ; k > 0 && (names[k-1].prefix > n.prefix || (names[k-1].prefix == n.prefix && d.compareNames(names[k-1], n) > 0)); k-- {
			names[k] = names[k-1]
		}
		names[k] = n
	}
}

// orders remembers orders of names, because objects of one producer usually have the same names in the same sequence. A
// remembered order is verified before use, so two sequences with the same key do no harm and only cost time.
type orders [64][]uint8

// mostOrdered is the maximum number of names whose order is remembered.
const mostOrdered = 256

// manyNames is the number of names from which remembering orders is worthwhile for a first text.
const manyNames = 256

// knownOrder returns a pointer to the memory in which the order of the given names is remembered. If orders are not
// remembered, knownOrder returns nil.
func (p *Parser) knownOrder(names []memberName) *[]uint8 {
	if p.orderCache == nil {
		if !p.reused && len(p.document.order) < manyNames {
			return nil
		}
		p.orderCache = new(orders)
	}
	last := len(names) - 1
	key := names[0].prefix + names[last/2].prefix<<1 + names[last].prefix<<2 + uint64(last)
	return &p.orderCache[key*0x9e3779b97f4a7c15>>58]
}

// keptOrder returns the order of sorted names to be remembered, or an empty order if there are too many names.
func keptOrder(room []uint8, names []memberName) []uint8 {
	room = room[:0]
	if len(names) > mostOrdered {
		return room
	}
	for i := range names {
		room = append(room, uint8(names[i].place))
	}
	return room
}
