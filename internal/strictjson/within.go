package strictjson

// Lookup returns the value that the pointer points to inside this one, and
// whether there is one.
func (v Value) Lookup(p Pointer) (Value, bool) {
	for _, token := range p.tokens {
		var ok bool
		if v, ok = v.child(token); !ok {
			return Value{}, false
		}
	}
	return v, true
}
