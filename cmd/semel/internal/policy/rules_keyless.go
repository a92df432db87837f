package policy

// keyless judges calls that carry no key: somebody has to say what they may do.
func (r rules) keyless(http *HTTP) {
	const at = "handler.http."
	double, lost := r.set(at+"may_double"), r.set(at+"may_be_lost")
	if !r.ok(at+"key", at+"may_double", at+"may_be_lost") {
		return
	}
	if http.NoKey && r.set(at+"window") {
		r.refuse(at+"window", "no key is sent that the endpoint could know", "remove it; may_double or may_be_lost says what follows an unknown outcome")
	}
	switch {
	case double && lost:
		r.refuse(at+"may_be_lost", "a call whose outcome is unknown is made again, or it is not: may_double says that it is", "keep one of the two")
	case http.NoKey && !double && !lost && !r.consumer.pure():
		r.refuse(at+"key", "nobody recognises a call without a key when it is made again, and after a crash or a lost answer nobody knows whether it was carried out",
			`say which of the two does no harm, with the reason: may_double: "…", or may_be_lost: "…"; or remove it, and write window: none if a person is to decide`)
	case !http.NoKey && double:
		r.refuse(at+"may_double", "a call is made again under its key, by which the other side recognises it", "remove it, or write key: none if the other side knows no keys")
	case !http.NoKey && lost:
		r.refuse(at+"may_be_lost", "a call is made again under its key, by which the other side recognises it", "remove it, or write key: none if the other side knows no keys")
	}
}
