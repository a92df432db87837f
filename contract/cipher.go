package contract

// Cipher encrypts what a store keeps of messages: bodies, keys, headers, attributes, outputs
// of steps, results. Package encryption has one; another may keep its keys elsewhere. It is
// called while a transaction is open, so it must ask no other system: what it needs of one,
// such as a key that a service has unwrapped, it keeps in memory. It is safe for use by
// several goroutines.
type Cipher interface {
	// Encrypt returns plain in a form of which Decrypt makes it again, and which says with
	// which key. About is what plain belongs to; it is not kept.
	Encrypt(plain, about []byte) ([]byte, error)
	// Decrypt undoes Encrypt. An error says what is wrong: the key is not there, the text
	// was changed, or it belongs to something else than about.
	Decrypt(encrypted, about []byte) ([]byte, error)
	// Derive returns a secret that a key and about determine, and the name of the key; false if there
	// is no n-th key. Key 0 is the one that Encrypt uses, the others are those of Decrypt. Stores make
	// keyed sums of fingerprints with it, which they compare, so that each process must get the same
	// secret from the same key, for as long as the key is used.
	Derive(n int, about []byte) (key [4]byte, secret [32]byte, there bool)
	// Overhead is by how many bytes what is encrypted is longer.
	Overhead() int
}
