package store

// Cipher encrypts the parts of messages that a store keeps: bodies, keys, headers, attributes, results and
// outputs of steps. Package encryption contains an implementation. The store calls a Cipher while a
// transaction is open. So a Cipher must not call other systems; it must cache the keys of an external service
// in memory. A Cipher is safe for concurrent use.
type Cipher interface {
	// Encrypt encrypts plain. The result contains the name of the key. The parameter about is additional data that is
	// authenticated and not stored.
	Encrypt(plain, about []byte) ([]byte, error)
	// Decrypt decrypts a result of Encrypt. Decrypt returns an error if the key is missing, if the text was changed, or
	// if another value of about was used for encryption.
	Decrypt(encrypted, about []byte) ([]byte, error)
	// Derive returns a secret that is derived from key n and about, and the name of the key. If there is no key n, the
	// result there is false. Key 0 is the key of Encrypt; keys with higher numbers are further keys of Decrypt. Stores
	// compare keyed hashes of fingerprints that use this secret. Therefore every process must derive the same secret
	// from the same key.
	Derive(n int, about []byte) (key [4]byte, secret [32]byte, there bool)
	// Overhead returns the number of bytes that Encrypt adds.
	Overhead() int
}
