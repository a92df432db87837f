package sqlform

import (
	"bytes"
	"crypto/aes"
	"crypto/sha256"

	"github.com/semel-go/semel"
)

// keyedSumSize is the size of a keyed sum. A keyed sum consists of the name of a key, and of the sum of a fingerprint
// that is encrypted as one AES block. The key of the block is derived from the cipher's key and from the object to
// which the fingerprint belongs. So equal contents of one identity have equal sums, which SQL can compare. Equal
// contents of different identities have different sums, so that an attacker cannot recognise a content by sending
// messages.
const keyedSumSize = 4 + aes.BlockSize

// keyedPrint is added to the version of a fingerprint with a keyed sum. An earlier release treats a keyed version like
// a version of a newer release: it does not process the message, and reports no conflict.
const keyedPrint = 256

// hiddenPrint is the version of a fingerprint whose key is missing. A fingerprint without its key can be compared only
// with fingerprints of the same identity and key. Package identity does not use this version.
const hiddenPrint = 14

// The kinds of objects to which fingerprints belong: an id as it is stored in its table, a stream, or a leased key.
const (
	PrintOfID     = "fingerprint/id"
	PrintOfStream = "fingerprint/stream"
	PrintOfKey    = "fingerprint/key"
)

// Print returns the version and sum that the tables store for a fingerprint. If c.Keyed is set, the sum is keyed.
func (c Crypt) Print(kind string, id []byte, f semel.Fingerprint) (version int64, sum []byte) {
	if c.Keyed && f.Version != 0 {
		if sum := c.keyedSum(0, kind, id, f); sum != nil {
			return keyedPrint + int64(f.Version), sum
		}
	}
	return int64(f.Version), Sum(f)
}

// MarkPrint returns the version and sum that the tables store for the fingerprint of a marker.
func (c Crypt) MarkPrint(m *Mark) (version int64, sum []byte) {
	return c.Print(PrintOfID, InnerKey(m.Key), m.Fingerprint)
}

// ReadPrint is the inverse of Print. ReadPrint reads sums without a key, and sums with any key of the cipher.
func (c Crypt) ReadPrint(kind string, id []byte, version int64, sum []byte) semel.Fingerprint {
	if version <= keyedPrint || len(sum) != keyedSumSize {
		return Fingerprint(uint8(version), sum)
	}
	f := semel.Fingerprint{Version: uint8(version - keyedPrint)}
	for n := 0; c.Cipher != nil; n++ {
		name, secret, there := c.Cipher.Derive(n, additionalData(kind, id))
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

// readablePrint reports whether this release can read the stored version and sum of a fingerprint.
func readablePrint(version int64, sum []byte) bool {
	return version >= 0 && version < keyedPrint || version > keyedPrint && version < 2*keyedPrint && len(sum) == keyedSumSize
}

// keyedSum returns the sum of a fingerprint with the n-th key, or nil if the cipher has fewer keys.
func (c Crypt) keyedSum(n int, kind string, id []byte, f semel.Fingerprint) []byte {
	name, secret, there := c.Cipher.Derive(n, additionalData(kind, id))
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

// RowConflict returns the part of a row's key after the identity. If the row is no conflict, RowConflict returns an
// empty part.
func (c Crypt) RowConflict(m *Mark, conflict bool) []byte {
	if !conflict {
		return []byte{}
	}
	var room [1][]byte
	return c.AppendConflicts(room[:0], m)[0]
}

// AppendConflicts appends all values that RowConflict may have returned for the row of a conflict with the content of
// m. The first value is the value that this store writes. The values with other keys of the cipher follow, and the
// value of a store without a key.
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

// Repeated returns the possible parts of the key for the row of a repeated delivery. For a conflict, the result has all
// values of AppendConflicts. For other rows, the result has one value.
func (c Crypt) Repeated(m *Mark, conflict bool) [][]byte {
	if !conflict {
		return [][]byte{{}}
	}
	return c.AppendConflicts(nil, m)
}

// EditSums returns the stored hashes of the bodies before and after an edit of a row, and the secret for
// admin.EditAct. If sums are keyed, the hashes are encrypted.
func (c Crypt) EditSums(row int64, before, after []byte) (was, is, secret []byte, err error) {
	b, a := sha256.Sum256(before), sha256.Sum256(after)
	if !c.Keyed {
		return b[:], a[:], nil, nil
	}
	if was, err = c.Hide(ofEdit, rowID(row), b[:]); err == nil {
		is, err = c.Hide(ofEdit, rowID(row), a[:])
	}
	_, key, _ := c.Cipher.Derive(0, additionalData(ofEdit, rowID(row)))
	return was, is, key[:], err
}

// EditSum is the inverse of EditSums for one hash. If the key of the hash is missing, EditSum returns zeros.
func (c Crypt) EditSum(row int64, kept []byte) (sum [sha256.Size]byte) {
	if shown, err := c.Show(ofEdit, rowID(row), kept); err == nil {
		copy(sum[:], shown)
	}
	return sum
}

const ofEdit = "edit"
