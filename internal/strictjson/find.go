package strictjson

import "math/bits"

// Found is a value that Find has found. If Find has found no value, Kind is 0.
type Found struct {
	Kind Kind
	// Raw is the value exactly as in the text. Raw shares the memory of the text.
	Raw []byte
	// Text is the text of a string without quotes and escapes. For other values, Text is equal to Raw.
	Text []byte
}

// mostAtOnce is the maximum number of pointers for one pass.
const mostAtOnce = 64

// Find looks up values without parsing, by skipping all other values. The text must be known to be strict JSON (see
// Proof). For another text Find may return wrong values or panic, but it always ends. The slice found must have the
// length of pointers, and gets a value for each pointer. Strings with escapes are decoded into memory that is appended
// to scratch. Find returns scratch with the appended bytes.
func Find(text []byte, pointers []Pointer, found []Found, scratch []byte) []byte {
	clear(found[:len(pointers)])
	for len(pointers) > 0 {
		n := min(len(pointers), mostAtOnce)
		f := finder{text, pointers[:n], found[:n], scratch, ^uint64(0) >> (mostAtOnce - n)}
		f.findInValue(skipSpace(text, 0), f.sought, 0)
		scratch = f.scratch
		pointers, found = pointers[n:], found[n:]
	}
	return scratch
}

// finder is one pass of Find. A set of pointers is a number with one bit for each pointer.
type finder struct {
	text     []byte
	pointers []Pointer
	found    []Found
	scratch  []byte
	// sought is the set of pointers that are not found yet.
	sought uint64
}

// findInValue follows the pointers in a set from the JSON value at i. The first tokens of the pointers lead to this
// value; the parameter depth is the number of these tokens. If some pointers are not found yet, findInValue returns the
// end of the value.
func (f *finder) findInValue(i int, set uint64, depth int) (end int) {
	here := f.pointersEndingAt(set, depth)
	switch deeper := set &^ here; {
	case deeper != 0 && f.text[i] == '{':
		end = f.findInObject(skipSpace(f.text, i+1), deeper, depth)
	case deeper != 0 && f.text[i] == '[':
		end = f.findInArray(skipSpace(f.text, i+1), deeper, depth)
	default:
		end = skipValue(f.text, i)
	}
	if here != 0 {
		f.storeFound(here, f.text[i:end:end])
	}
	f.sought &^= set
	return end
}

// pointersEndingAt returns those pointers in a set that end at the given depth, because they have as many tokens.
func (f *finder) pointersEndingAt(set uint64, depth int) (here uint64) {
	for rest := set; rest != 0; rest &= rest - 1 {
		if len(f.pointers[lowest(rest)].tokens) == depth {
			here |= rest & -rest
		}
	}
	return here
}

// storeFound stores the value for the pointers in a set.
func (f *finder) storeFound(set uint64, raw []byte) {
	found := Found{kindOf(raw[0]), raw, raw}
	if found.Kind == String {
		found.Text = f.stringText(raw)
	}
	for ; set != 0; set &= set - 1 {
		f.found[lowest(set)] = found
	}
}

func (f *finder) stringText(raw []byte) []byte {
	inner := raw[1 : len(raw)-1 : len(raw)-1]
	if _, escaped := skipString(raw, 1); !escaped {
		return inner
	}
	before := len(f.scratch)
	f.scratch = appendDecoded(f.scratch, inner)
	return f.scratch[before:len(f.scratch):len(f.scratch)]
}

// findInObject follows the pointers in a set into an object. The parameter i is the index of the first name or, if the
// object is empty, of its end.
func (f *finder) findInObject(i int, set uint64, depth int) (end int) {
	for f.text[i] != '}' {
		nameEnd, escaped := skipString(f.text, i+1)
		named := uint64(0)
		if escaped {
			named = f.namedDecoded(f.text[i+1:nameEnd-1], set, depth)
		} else {
			named = f.pointersWithName(f.text[i+1:nameEnd-1], prefixIn(f.text, i+1, nameEnd-1), set, depth)
		}
		i = skipSpace(f.text, skipSpace(f.text, nameEnd)+1)
		if i = f.findInMember(i, named, depth); named != 0 {
			if set &^= named; set == 0 {
				return f.skipRest(i)
			}
		}
		if i = skipSpace(f.text, i); f.text[i] == ',' {
			i = skipSpace(f.text, i+1)
		}
	}
	return i + 1
}

// findInArray follows the pointers in a set into an array. The parameter i is the index of the first element or, if the
// array is empty, of its end.
func (f *finder) findInArray(i int, set uint64, depth int) (end int) {
	for index := 0; f.text[i] != ']'; index++ {
		indexed := f.pointersWithIndex(index, set, depth)
		if i = f.findInMember(i, indexed, depth); indexed != 0 {
			if set &^= indexed; set == 0 {
				return f.skipRest(i)
			}
		}
		if i = skipSpace(f.text, i); f.text[i] == ',' {
			i = skipSpace(f.text, i+1)
		}
	}
	return i + 1
}

// findInMember follows the pointers in a set, which lead to the value at i, and returns the end of that value.
func (f *finder) findInMember(i int, set uint64, depth int) (end int) {
	if set == 0 {
		return skipValue(f.text, i)
	}
	return f.findInValue(i, set, depth+1)
}

// skipRest returns the end of the array or object that is open at i, if some pointers are not found yet. If all
// pointers are found, skipRest returns i.
func (f *finder) skipRest(i int) (end int) {
	if f.sought == 0 {
		return i
	}
	return skipNested(f.text, i)
}

// namedDecoded does the same as pointersWithName, for a name that contains escapes.
func (f *finder) namedDecoded(raw []byte, set uint64, depth int) (named uint64) {
	before := len(f.scratch)
	f.scratch = appendDecoded(f.scratch, raw)
	name := f.scratch[before:]
	f.scratch = f.scratch[:before]
	return f.pointersWithName(name, prefixOf(name), set, depth)
}

// pointersWithName returns those pointers in a set whose token at the given depth is the name.
func (f *finder) pointersWithName(name []byte, prefix uint64, set uint64, depth int) (named uint64) {
	for rest := set; rest != 0; rest &= rest - 1 {
		t := &f.pointers[lowest(rest)].tokens[depth]
		if t.prefix == prefix && t.name == string(name) {
			named |= rest & -rest
		}
	}
	return named
}

// pointersWithIndex returns those pointers in a set whose token at the given depth is the index.
func (f *finder) pointersWithIndex(index int, set uint64, depth int) (indexed uint64) {
	for rest := set; rest != 0; rest &= rest - 1 {
		if f.pointers[lowest(rest)].tokens[depth].index == index {
			indexed |= rest & -rest
		}
	}
	return indexed
}

// lowest returns the index of the first pointer of a set.
func lowest(set uint64) int { return bits.TrailingZeros64(set) }
