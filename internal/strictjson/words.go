package strictjson

import (
	"encoding/binary"
	"math/bits"
)

// Text is read in words of eight bytes, the first byte the lowest. A mask has
// the bit 0x80 of each byte that it marks.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// wordAt is the word at i, with NULs for what is behind the end of the text.
func wordAt(text []byte, i int) uint64 {
	if len(text)-i >= 8 {
		return binary.LittleEndian.Uint64(text[i:])
	}
	var padded [8]byte
	copy(padded[:], text[i:])
	return binary.LittleEndian.Uint64(padded[:])
}

// marks marks the bytes that are c, exactly.
func marks(word uint64, c byte) uint64 {
	x := word ^ ones*uint64(c)
	return ^((x&^highs + ^uint64(highs)) | x) & highs
}

// first is the place of the lowest byte that is marked, 8 if none is.
func first(mask uint64) int { return bits.TrailingZeros64(mask) / 8 }

// prefixOf is a text's first eight bytes, the first the highest, so that
// prefixes compare as the texts do; shorter texts are followed by NULs.
func prefixOf(text []byte) uint64 { return bits.ReverseBytes64(wordAt(text, 0)) }

// prefixIn is prefixOf text[start:end], behind which at least a byte stands.
func prefixIn(text []byte, start, end int) uint64 {
	prefix := bits.ReverseBytes64(wordAt(text, start))
	if length := end - start; length < 8 {
		return prefix &^ (1<<(64-8*length) - 1)
	}
	return prefix
}

// special marks the lowest byte that does not simply stand for itself in a
// string: a quote, a backslash, a control character or one that is not ASCII.
// Higher bytes may be marked without reason.
func special(word uint64) uint64 {
	// With the bit 2 turned a quote is a space, and all that stands below it stays below.
	const quotes, below, backslashes = 0x02 * ones, 0x21 * ones, '\\' * ones
	return (((word ^ quotes) - below) | ((word ^ backslashes) - ones) | word) & highs
}
