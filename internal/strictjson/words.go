package strictjson

import (
	"encoding/binary"
	"math/bits"
)

// The functions of this file read text in words of eight bytes, with the first byte in the lowest bits. A mask has the
// bit 0x80 set in each marked byte.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// wordAt returns the word at i, padded with NULs after the end of the text.
func wordAt(text []byte, i int) uint64 {
	if len(text)-i >= 8 {
		return binary.LittleEndian.Uint64(text[i:])
	}
	var padded [8]byte
	copy(padded[:], text[i:])
	return binary.LittleEndian.Uint64(padded[:])
}

// marks returns a mask in which exactly the bytes that equal c are marked.
func marks(word uint64, c byte) uint64 {
	x := word ^ ones*uint64(c)
	return ^((x&^highs + ^uint64(highs)) | x) & highs
}

// firstMarked returns the index of the lowest marked byte, or 8 if no byte is marked.
func firstMarked(mask uint64) int { return bits.TrailingZeros64(mask) / 8 }

// prefixOf returns the first eight bytes of a text, with the first byte in the highest bits. Two prefixes therefore
// compare like their texts. Shorter texts are padded with NULs.
func prefixOf(text []byte) uint64 { return bits.ReverseBytes64(wordAt(text, 0)) }

// prefixIn returns prefixOf(text[start:end]). The text must have at least one byte after end.
func prefixIn(text []byte, start, end int) uint64 {
	prefix := bits.ReverseBytes64(wordAt(text, start))
	if length := end - start; length < 8 {
		return prefix &^ (1<<(64-8*length) - 1)
	}
	return prefix
}

// special sets the high bit of the first special byte in eight bytes of a string: a quote, a backslash, a control
// character or a byte that is not ASCII. The bits of later bytes can be wrong.
func special(word uint64) uint64 {
	// If bit 2 is flipped, a quote becomes a space, and all control characters stay less than a space.
	const quotes, below, backslashes = 0x02 * ones, 0x21 * ones, '\\' * ones
	return (((word ^ quotes) - below) | ((word ^ backslashes) - ones) | word) & highs
}
