package store

// Cipher encrypts the parts of messages that a store keeps: bodies, keys, headers, attributes, results and
// outputs of steps. Package encryption contains an implementation. The store calls a Cipher while a
// transaction is open, so it must not call other systems; keys of an external service must be cached in
// memory. A Cipher is safe for concurrent use.
type Cipher interface {
	// Encrypt encrypts plain. The result names the key that was used. about is authenticated as
	// additional data and not stored.
	Encrypt(plain, about []byte) ([]byte, error)
	// Decrypt reverses Encrypt. The error says whether the key is missing, the text was changed, or it
	// was encrypted with another about.
	Decrypt(encrypted, about []byte) ([]byte, error)
	// Derive returns a secret derived from key n and about, and the name of the key. Derive reports
	// whether there is a key n. Key 0 is the key of Encrypt; the others are further keys of Decrypt.
	// Stores compare keyed hashes of fingerprints that use this secret, so every process must derive
	// the same secret from the same key.
	Derive(n int, about []byte) (key [4]byte, secret [32]byte, there bool)
	// Overhead returns the number of bytes that Encrypt adds.
	Overhead() int
}
