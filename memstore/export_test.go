package memstore

// CountKeys is how many keys are held, those among them that are over.
func CountKeys(k *Keys) int { return len(k.keys) }
