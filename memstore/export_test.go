package memstore

// CountKeys returns the number of keys in memory, including expired ones.
func CountKeys(k *Keys) int { return len(k.keys) }
