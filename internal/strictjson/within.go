package strictjson

// Lookup returns the value that the pointer points to, relative to this value, and whether
// there is one.
func (v Value) Lookup(p Pointer) (Value, bool) {
	for _, token := range p.tokens {
		var ok bool
		if v, ok = v.child(token); !ok {
			return Value{}, false
		}
	}
	return v, true
}
