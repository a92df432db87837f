package strictjson

// The functions of this file skip parts of a text that is known to be strict JSON, and check only white space.

// isSpace reports whether c is white space between values.
func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// skipSpace returns the end of the white space that begins at i.
func skipSpace(text []byte, i int) int {
	for i < len(text) && text[i] <= ' ' && isSpace(text[i]) {
		i++
	}
	return i
}

// skipValue returns the end of the value at i.
func skipValue(text []byte, i int) int {
	switch text[i] {
	case '"':
		end, _ := skipString(text, i+1)
		return end
	case '{', '[':
		return skipNested(text, i+1)
	}
	for i++; i < len(text) && !isSpace(text[i]) && text[i] != ',' && text[i] != '}' && text[i] != ']'; {
		i++
	}
	return i
}

// skipString skips the string whose text begins at i. The result end is the index after the closing quote. The result
// escaped reports whether the string contains escapes.
func skipString(text []byte, i int) (end int, escaped bool) {
	for {
		word := wordAt(text, i)
		n := firstMarked(stringEnds(word))
		i += n
		switch {
		case n == 8:
		case text[i] == '"':
			return i + 1, escaped
		default:
			escaped = true
			i += 2
		}
	}
}

// stringEnds marks the first byte of the word that is a quote or a backslash. The marks of later bytes can be wrong.
func stringEnds(word uint64) uint64 {
	quotes, backslashes := word^'"'*ones, word^'\\'*ones
	return ((quotes-ones)&^quotes | (backslashes-ones)&^backslashes) & highs
}

// skipNested returns the index after the closing bracket of the array or object that is open at i. skipNested
// processes eight bytes at a time. The number of quotes before a byte shows whether the byte is inside a
// string.
func skipNested(text []byte, i int) int {
	depth := 1
	inString := uint64(0) // the lowest bit of each byte is set if the text before i ends inside a string
	escaped := uint64(0)  // whether a backslash escapes the byte at i
	for ; ; i += 8 {
		word := wordAt(text, i)
		quotes := marks(word, '"')
		if backslashes := marks(word, '\\'); backslashes|escaped != 0 {
			var hidden uint64
			hidden, escaped = behindBackslashes(backslashes, escaped)
			quotes &^= hidden
		}
		inside := (quotes>>7*ones ^ inString) & ones
		inString = inside >> 56 * ones
		letters := word | 0x20*ones // converts square brackets to braces
		opened := marks(letters, '{') >> 7 &^ inside
		closed := marks(letters, '}') >> 7 &^ inside
		if n := count(closed); n >= depth {
			if end := closing(opened, closed, depth); end > 0 {
				return i + end
			}
		}
		depth += count(opened) - count(closed)
	}
}

// count returns the number of marked bytes in mask. A byte is marked by its lowest bit.
func count(mask uint64) int { return int(mask * ones >> 56) }

// closing searches a word for the bracket that closes the outermost open bracket, where depth is the number of open
// brackets. The result is the index after the closing bracket, or 0 if the word does not contain it.
func closing(opened, closed uint64, depth int) int {
	for all := opened | closed; all != 0; all &= all - 1 {
		if lowest := all & -all; opened&lowest != 0 {
			depth++
			continue
		}
		if depth--; depth == 0 {
			return firstMarked(all) + 1
		}
	}
	return 0
}

// behindBackslashes marks the bytes that are escaped by a backslash. The parameter carry says whether the first byte of
// the word is escaped. The result after says whether the first byte of the next word is escaped.
func behindBackslashes(backslashes, carry uint64) (hidden, after uint64) {
	hidden = carry * 0x80
	for backslashes &^= hidden; backslashes != 0; {
		lowest := backslashes & -backslashes
		hidden |= lowest << 8
		after = lowest >> 63
		backslashes &^= lowest | lowest<<8
	}
	return hidden, after
}
