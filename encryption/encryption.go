// Package encryption encrypts the messages in a store. A person who can read the store's files,
// replicas or backups, but does not have the key, cannot read the messages.
//
//	cipher, err := encryption.New(key)
//	store, err := sqlstore.Postgres(db, sqlstore.Options{Cipher: cipher})
//
// Encrypted are: bodies, keys, headers and attributes of messages in the inbox, first and last
// errors of rows, outputs of steps, results, and the results of leased keys.
//
// Not encrypted is what the database compares or shows: ids and sources of identities, topics,
// types, names of streams, keys that messages are ordered by, reasons, and operator commands.
//
// If you lose a key, you lose everything that it encrypted. The identities remain readable, so copies of messages are
// still recognised as duplicates.
//
// Each text is encrypted with AES-256-GCM, under a key of its own and 12 random bytes as nonce.
// HMAC-SHA-256 derives the text's key from the given key and 16 random bytes. So a given key is
// sufficient for more messages than a store will ever hold.
//
// Each encrypted text is bound to the object to which it belongs, and the store rejects a text that was copied to
// another object. Messages are bound to their identity (consumer, source and id), results to their id, outputs of steps
// to the number of their row, and errors to an identity or to the number of a row.
//
// Encryption does not prevent two attacks by a database user who can write the tables and has no key. The database user
// can replace a text by an older text of the same identity. The database user can also insert rows in plain text;
// consumers process rows in plain text unless the store's option EncryptedSince is set.
//
// Fingerprints are hashes, so a short body, such as four digits, can be guessed from its
// fingerprint. A store that was opened with EncryptedSince in the past encrypts the
// fingerprints that it writes, under a separate key for each id.
package encryption

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/semel-go/semel/internal/digest"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// An encrypted text consists of the number of its format, the name of its key, the salt from
// which its own key is derived, a nonce, and the output of AES-GCM.
const (
	form      = 1
	nameSize  = 4
	saltSize  = 16
	nonceSize = 12
	tagSize   = 16
	headSize  = 1 + nameSize + saltSize + nonceSize
)

// overhead is the number of bytes by which an encrypted text is longer than its plaintext.
const overhead = headSize + tagSize

// Cipher is a store.Cipher. Create a Cipher with New.
type Cipher struct {
	current name
	keys    map[name][]byte
	order   []name // names of the keys, the current key first
}

// name identifies a key in encrypted texts: the first bytes of a hash of the key.
type name [nameSize]byte

// String returns the name of the key in hexadecimal digits, as errors show it.
func (n name) String() string { return hex.EncodeToString(n[:]) }

func nameOf(key []byte) name {
	h := sha256.New()
	digest.Begin(h, "encryption/key/1")
	digest.Part(h, key)
	return name(h.Sum(nil)[:nameSize])
}

// New returns a cipher that encrypts with key, and decrypts with key and the keys in former. Each key has KeySize bytes
// from a random source.
//
// To change the key, first pass the new key in former in all processes. Next, pass the new key as key, and the old key
// in former. The old key is needed as long as the store contains texts that were encrypted with it.
func New(key []byte, former ...[]byte) (*Cipher, error) {
	c := &Cipher{current: nameOf(key), keys: map[name][]byte{}}
	for i, k := range append([][]byte{key}, former...) {
		if len(k) != KeySize {
			return nil, fmt.Errorf("encryption: key %d has %d bytes; a key has %d bytes, for example from openssl rand -base64 %d", i+1, len(k), KeySize, KeySize)
		}
		n := nameOf(k)
		if known, there := c.keys[n]; there && !hmac.Equal(known, k) {
			return nil, fmt.Errorf("encryption: key %d has the same name %s as another key, by a rare coincidence; generate another key", i+1, n)
		}
		if c.keys[n] == nil {
			c.order = append(c.order, n)
		}
		c.keys[n] = append([]byte(nil), k...)
	}
	return c, nil
}

// Current returns the name of the key that Encrypt uses, as it appears in errors of Decrypt.
func (c *Cipher) Current() string { return c.current.String() }

// Overhead implements store.Cipher.
func (*Cipher) Overhead() int { return overhead }

// Encrypt implements store.Cipher. Encrypt never fails.
func (c *Cipher) Encrypt(plain, about []byte) ([]byte, error) {
	text := make([]byte, headSize, headSize+len(plain)+tagSize)
	text[0] = form
	copy(text[1:], c.current[:])
	_, _ = rand.Read(text[1+nameSize:]) // rand.Read never fails
	salt, nonce := text[1+nameSize:1+nameSize+saltSize], text[1+nameSize+saltSize:]
	return gcm(c.keys[c.current], salt).Seal(text, nonce, plain, about), nil
}

var errChanged = errors.New("encryption: the text was changed, or belongs to something else")

// UnknownKeyError is the error for a text that was encrypted with a key that New did not get.
type UnknownKeyError struct{ Key string }

// Error implements error.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("encryption: it is encrypted with the key %s, which was not given; give it as a former key", e.Key)
}

// Decrypt implements store.Cipher. Decrypt returns an *UnknownKeyError if New did not get the
// key of the text.
func (c *Cipher) Decrypt(encrypted, about []byte) ([]byte, error) {
	if len(encrypted) < overhead || encrypted[0] != form {
		return nil, errors.New("encryption: not an encrypted text, or its format is unknown")
	}
	n := name(encrypted[1 : 1+nameSize])
	key, there := c.keys[n]
	if !there {
		return nil, &UnknownKeyError{n.String()}
	}
	salt, nonce := encrypted[1+nameSize:1+nameSize+saltSize], encrypted[1+nameSize+saltSize:headSize]
	plain, err := gcm(key, salt).Open([]byte{}, nonce, encrypted[headSize:], about)
	if err != nil {
		return nil, errChanged
	}
	return plain, nil
}

// Derive implements store.Cipher: it returns the HMAC-SHA-256 of about under the n-th key.
func (c *Cipher) Derive(n int, about []byte) (key [nameSize]byte, secret [sha256.Size]byte, there bool) {
	if n < 0 || n >= len(c.order) {
		return key, secret, false
	}
	h := hmac.New(sha256.New, c.keys[c.order[n]])
	digest.Begin(h, "encryption/secret/1")
	digest.Part(h, about)
	h.Sum(secret[:0])
	return c.order[n], secret, true
}

// gcm returns the AES-GCM cipher for the text with the given salt.
func gcm(key, salt []byte) cipher.AEAD {
	h := hmac.New(sha256.New, key)
	digest.Begin(h, "encryption/text/1")
	digest.Part(h, salt)
	block, err := aes.NewCipher(h.Sum(nil))
	if err != nil {
		panic(err) // a hash has the length of a key
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has the length of a block that GCM needs
	}
	return aead
}
