package strictjson

// Lookup returns the value to which the pointer points, relative to this value. The second result is false if there is
// no such value.
func (v Value) Lookup(p Pointer) (Value, bool) {
	for _, token := range p.tokens {
		var ok bool
		if v, ok = v.child(token); !ok {
			return Value{}, false
		}
	}
	return v, true
}
