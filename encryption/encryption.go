// Package encryption encrypts what a store keeps of messages, so that who reads its files,
// replicas or backups without the key reads no message.
//
//	cipher, err := encryption.New(key)
//	store, err := sqlstore.Postgres(db, sqlstore.Options{Cipher: cipher})
//
// What is encrypted: bodies, keys, headers and attributes of messages in the inbox, first and
// last errors of rows, outputs of steps, results, and the results of leased keys. What is not:
// what the database compares or shows, that is, ids and sources of identities, topics, types,
// names of streams, keys that an order is kept by, reasons and acts. A key lost is all of that
// lost; the identities stay, and copies are duplicates as before.
//
// Each text has a key of its own, which HMAC-SHA-256 derives from the given one and 16 random
// bytes, and is encrypted with AES-256-GCM under 12 further random bytes, so that one given key
// is good for as many messages as a store will ever see. Messages are bound to their identity
// (consumer, source and id): the store refuses a text that was moved to another one. Results are
// bound to their id, outputs of steps to the number of their row, errors to either.
//
// Encryption does not prevent two attacks by a database user who can write the tables and has no
// key. The user can replace a text by an older one of the same identity. The user can also insert
// rows in plain text; consumers handle these unless the store's option EncryptedSince is set.
//
// Fingerprints are hashes, so a short body, such as one of four digits, can be guessed from its
// fingerprint. A store that is opened after its EncryptedSince encrypts the fingerprints that it
// writes, under a key of their own for each id.
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

// KeySize is how many bytes a key has.
const KeySize = 32

// A text is the number of this form, the name of its key, what its own key was derived with, a
// nonce, and what AES-GCM made of it.
const (
	form      = 1
	nameSize  = 4
	saltSize  = 16
	nonceSize = 12
	tagSize   = 16
	headSize  = 1 + nameSize + saltSize + nonceSize
)

// overhead is by how many bytes a text is longer than what was encrypted.
const overhead = headSize + tagSize

// Cipher is a store.Cipher with keys of its own. Use New.
type Cipher struct {
	current name
	keys    map[name][]byte
	order   []name // of keys, the current one first
}

// name is what a key is called in what it has encrypted: a few bytes of a hash of it.
type name [nameSize]byte

// String is the name as errors have it.
func (n name) String() string { return hex.EncodeToString(n[:]) }

func nameOf(key []byte) name {
	h := sha256.New()
	digest.Begin(h, "encryption/key/1")
	digest.Part(h, key)
	return name(h.Sum(nil)[:nameSize])
}

// New is a cipher that encrypts with the key, and decrypts with it and with former ones. Each
// has KeySize bytes, of a source of random bytes. A key is changed by giving the new one as
// former to all processes first, then as the key with the old one as former; the old one is
// needed for as long as anything is kept that it has encrypted.
func New(key []byte, former ...[]byte) (*Cipher, error) {
	c := &Cipher{current: nameOf(key), keys: map[name][]byte{}}
	for i, k := range append([][]byte{key}, former...) {
		if len(k) != KeySize {
			return nil, fmt.Errorf("encryption: key %d has %d bytes; one has %d, as from openssl rand -base64 %d", i+1, len(k), KeySize, KeySize)
		}
		n := nameOf(k)
		if known, there := c.keys[n]; there && !hmac.Equal(known, k) {
			return nil, fmt.Errorf("encryption: key %d has the name %s of another one, by a rare chance; make another", i+1, n)
		}
		if c.keys[n] == nil {
			c.order = append(c.order, n)
		}
		c.keys[n] = append([]byte(nil), k...)
	}
	return c, nil
}

// Current is the name of the key that Encrypt uses, as errors of Decrypt name keys.
func (c *Cipher) Current() string { return c.current.String() }

// Overhead implements store.Cipher.
func (*Cipher) Overhead() int { return overhead }

// Encrypt implements store.Cipher. It fails never.
func (c *Cipher) Encrypt(plain, about []byte) ([]byte, error) {
	text := make([]byte, headSize, headSize+len(plain)+tagSize)
	text[0] = form
	copy(text[1:], c.current[:])
	_, _ = rand.Read(text[1+nameSize:]) // it never fails
	salt, nonce := text[1+nameSize:1+nameSize+saltSize], text[1+nameSize+saltSize:]
	return gcm(c.keys[c.current], salt).Seal(text, nonce, plain, about), nil
}

var errChanged = errors.New("encryption: the text was changed, or belongs to something else")

// UnknownKeyError says that a text was encrypted with a key that was not given.
type UnknownKeyError struct{ Key string }

// Error implements error.
func (e *UnknownKeyError) Error() string {
	return fmt.Sprintf("encryption: it is encrypted with the key %s, which was not given; give it as a former key", e.Key)
}

// Decrypt implements store.Cipher. An *UnknownKeyError: its key was not given.
func (c *Cipher) Decrypt(encrypted, about []byte) ([]byte, error) {
	if len(encrypted) < overhead || encrypted[0] != form {
		return nil, errors.New("encryption: it is no text of this form")
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

// Derive implements store.Cipher: HMAC-SHA-256 of about, with the n-th key.
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

// gcm encrypts with the key that is derived with this salt.
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
