package sqlform

import (
	"bytes"
	"crypto/aes"
	"crypto/sha256"

	"github.com/semel-go/semel"
)

// A keyed sum is the sum of a fingerprint, encrypted as one block of AES behind the name of the key.
// The block's own key is derived from the cipher's and from what the fingerprint belongs to. So equal
// contents of one identity have equal sums, which SQL can compare, and equal contents of two identities
// do not, so that nobody can learn a content from messages of their own.
const keyedSumSize = 4 + aes.BlockSize

// keyedPrint is added to the version of a fingerprint whose sum is keyed. An earlier release takes such
// a version for one of a newer release: it leaves the message alone and does not call it a conflict.
const keyedPrint = 256

// hiddenPrint is the version of a fingerprint whose key was not given: it can be compared only with
// others of the same identity and key. Package identity keeps this version free.
const hiddenPrint = 14

// What a fingerprint belongs to: an id as its table has it, a stream, or a leased key.
const (
	PrintOfID     = "fingerprint/id"
	PrintOfStream = "fingerprint/stream"
	PrintOfKey    = "fingerprint/key"
)

// Print returns version and sum of a fingerprint as the tables have them. The sum is keyed if
// encryption was required when the store was opened.
func (c Crypt) Print(kind string, id []byte, f semel.Fingerprint) (version int64, sum []byte) {
	if c.Keyed && f.Version != 0 {
		if sum := c.keyedSum(0, kind, id, f); sum != nil {
			return keyedPrint + int64(f.Version), sum
		}
	}
	return int64(f.Version), Sum(f)
}

// MarkPrint is Print of a mark's fingerprint.
func (c Crypt) MarkPrint(m *Mark) (version int64, sum []byte) {
	return c.Print(PrintOfID, InnerKey(m.Key), m.Fingerprint)
}

// ReadPrint undoes Print, whichever key it was written with, or none.
func (c Crypt) ReadPrint(kind string, id []byte, version int64, sum []byte) semel.Fingerprint {
	if version <= keyedPrint || len(sum) != keyedSumSize {
		return Fingerprint(uint8(version), sum)
	}
	f := semel.Fingerprint{Version: uint8(version - keyedPrint)}
	for n := 0; c.Cipher != nil; n++ {
		name, secret, there := c.Cipher.Derive(n, about(kind, id))
		if !there {
			break
		}
		if block, err := aes.NewCipher(secret[:]); err == nil && bytes.Equal(name[:], sum[:len(name)]) {
			block.Decrypt(f.Sum[:], sum[len(name):])
			return f
		}
	}
	return Fingerprint(hiddenPrint, sum[keyedSumSize-aes.BlockSize:])
}

// readablePrint reports whether a fingerprint is in a form of this release.
func readablePrint(version int64, sum []byte) bool {
	return version >= 0 && version < keyedPrint || version > keyedPrint && version < 2*keyedPrint && len(sum) == keyedSumSize
}

// keyedSum is the keyed sum of a fingerprint under the n-th key; nil if there is none.
func (c Crypt) keyedSum(n int, kind string, id []byte, f semel.Fingerprint) []byte {
	name, secret, there := c.Cipher.Derive(n, about(kind, id))
	if !there {
		return nil
	}
	block, err := aes.NewCipher(secret[:])
	if err != nil {
		return nil
	}
	sum := append(make([]byte, 0, keyedSumSize), name[:]...)[:keyedSumSize]
	block.Encrypt(sum[len(name):], f.Sum[:])
	return sum
}

// RowConflict is what a row carries in its key beside the identity: nothing,
// unless it is a conflict's.
func (c Crypt) RowConflict(m *Mark, conflict bool) []byte {
	if !conflict {
		return []byte{}
	}
	var room [1][]byte
	return c.AppendConflicts(room[:0], m)[0]
}

// AppendConflicts appends what the row of a conflict with the content of a mark may carry in its key:
// first the form that this store writes, then those of other keys and of stores without one.
func (c Crypt) AppendConflicts(all [][]byte, m *Mark) [][]byte {
	plain := Conflict(m.Fingerprint)
	if c.Cipher == nil || m.Fingerprint.Version == 0 {
		return append(all, plain)
	}
	if !c.Keyed {
		all = append(all, plain)
	}
	for n := 0; ; n++ {
		sum := c.keyedSum(n, PrintOfID, InnerKey(m.Key), m.Fingerprint)
		if sum == nil {
			break
		}
		all = append(all, append([]byte{m.Fingerprint.Version}, sum...))
	}
	if c.Keyed {
		all = append(all, plain)
	}
	return all
}

// Repeated returns what the row of a repeated delivery may carry in its key beside the identity: one
// form, or for the row of a conflict each of AppendConflicts.
func (c Crypt) Repeated(m *Mark, conflict bool) [][]byte {
	if !conflict {
		return [][]byte{{}}
	}
	return c.AppendConflicts(nil, m)
}

// EditSums are what is kept of the hashes of two bodies, of which one replaced the other in a row, and
// the secret of admin.EditAct. With keyed sums they are encrypted.
func (c Crypt) EditSums(row int64, before, after []byte) (was, is, secret []byte, err error) {
	b, a := sha256.Sum256(before), sha256.Sum256(after)
	if !c.Keyed {
		return b[:], a[:], nil, nil
	}
	if was, err = c.Hide(ofEdit, rowID(row), b[:]); err == nil {
		is, err = c.Hide(ofEdit, rowID(row), a[:])
	}
	_, key, _ := c.Cipher.Derive(0, about(ofEdit, rowID(row)))
	return was, is, key[:], err
}

// EditSum undoes EditSums for one of the hashes; zero if its key was not given.
func (c Crypt) EditSum(row int64, kept []byte) (sum [sha256.Size]byte) {
	if shown, err := c.Show(ofEdit, rowID(row), kept); err == nil {
		copy(sum[:], shown)
	}
	return sum
}

const ofEdit = "edit"
