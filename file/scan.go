package file

import "bytes"

// The number of bytes that are read at once.
const chunk = 256 << 10

// line is one line of the input. The text of a line is valid until the next call of the scanner.
type line struct {
	// The line without line end and byte-order mark. If the line is too long, text contains only its beginning.
	text []byte
	// The fields start and end are the range of the line in the file, including the line end.
	start, end int64
	// The length of the whole line without the line end.
	length int64
}

// scanner splits bytes into lines. A scanner does no I/O: the caller writes bytes into the slice that freeSpace
// returns, and calls addFilled after the write. If a line is longer than limit, scanner keeps its beginning and counts
// the other bytes.
type scanner struct {
	limit int
	// The smallest size of a new buffer. freeSpace makes room for at least half of the field piece.
	piece  int
	buffer []byte
	// The fields from and to are the range of unread bytes in buffer. The bytes before the index in the field searched
	// contain no line end.
	from, searched, to int
	// The offset of buffer[from] in the file.
	offset int64
	// If not nil, the field long is the beginning of a line over the limit whose other bytes are being skipped; longAt
	// is the offset of that line. The field carriage is true if the last skipped byte was a carriage return.
	long     []byte
	longAt   int64
	carriage bool
}

func newScanner(limit int, at int64) *scanner {
	return &scanner{limit: limit, piece: chunk, offset: at}
}

// readOffset returns the offset after all bytes that were read so far.
func (s *scanner) readOffset() int64 { return s.offset + int64(s.to-s.from) }

// freeSpace returns the part of the buffer into which the caller must write, at most chunk bytes.
func (s *scanner) freeSpace() []byte {
	if s.from > 0 {
		copy(s.buffer, s.buffer[s.from:s.to])
		s.to -= s.from
		s.searched -= s.from
		s.from = 0
	}
	if len(s.buffer)-s.to < s.piece/2+1 {
		grown := make([]byte, max(s.piece, min(2*len(s.buffer), s.limit+2*chunk)))
		copy(grown, s.buffer[:s.to])
		s.buffer = grown
	}
	return s.buffer[s.to:min(len(s.buffer), s.to+chunk)]
}

// addFilled must be called after the caller has written n bytes into the slice that freeSpace returned.
func (s *scanner) addFilled(n int) { s.to += n }

// nextLine returns the next line that has a line end. If the parameter final is true, the bytes after the last
// line end also count as a line.
func (s *scanner) nextLine(final bool) (line, bool) {
	for {
		l, ok := s.nextRawLine(final)
		if !ok || !isBlank(l) {
			return l, ok
		}
	}
}

func isBlank(l line) bool {
	if l.length > int64(len(l.text)) {
		return false
	}
	for _, c := range l.text {
		if c != ' ' && c != '\t' && c != '\r' {
			return false
		}
	}
	return true
}

// nextRawLine returns the next line like nextLine, but also blank lines.
func (s *scanner) nextRawLine(final bool) (line, bool) {
	i := bytes.IndexByte(s.buffer[s.searched:s.to], '\n')
	switch {
	case i >= 0:
		return s.cutLine(s.searched+i, 1), true
	case final && (s.to > s.from || s.long != nil):
		return s.cutLine(s.to, 0), true
	}
	s.searched = s.to
	if s.long != nil || s.to-s.from > s.limit+len(mark)+1 {
		s.skipLong()
	}
	return line{}, false
}

// rest returns the bytes after the last line end as a line, without removing these bytes. The result is false if the
// bytes are only blanks. The caller must have read all lines with line ends before.
func (s *scanner) rest() (line, bool) {
	if s.to == s.from && s.long == nil {
		return line{}, false
	}
	unread := *s
	l := s.cutLine(s.to, 0)
	*s = unread
	return l, !isBlank(l)
}

// cutLine returns the line that ends before buffer[end], and removes the line with its line end.
func (s *scanner) cutLine(end, lineEnd int) line {
	text, start := s.buffer[s.from:end], s.offset
	s.from, s.searched = end+lineEnd, end+lineEnd
	s.offset += int64(len(text) + lineEnd)
	if s.long != nil {
		return s.cutLong(text, lineEnd)
	}
	text = trimByteOrderMark(text, start)
	if n := len(text); lineEnd > 0 && n > 0 && text[n-1] == '\r' {
		text = text[:n-1]
	}
	l := line{text: text, start: start, end: s.offset, length: int64(len(text))}
	if len(text) > s.limit {
		l.text = text[:kept]
	}
	return l
}

// cutLong returns a line over the limit when its end was found.
func (s *scanner) cutLong(rest []byte, lineEnd int) line {
	length := s.offset - s.longAt - int64(lineEnd)
	if len(rest) > 0 {
		s.carriage = rest[len(rest)-1] == '\r'
	}
	if s.carriage && lineEnd > 0 {
		length--
	}
	l := line{text: trimByteOrderMark(s.long, s.longAt), start: s.longAt, end: s.offset}
	l.length = length - int64(len(s.long)-len(l.text))
	l.text = l.text[:kept]
	s.long = nil
	return l
}

// skipLong drops the unread bytes of a line over the limit, but keeps the beginning of the line.
func (s *scanner) skipLong() {
	unread := s.buffer[s.from:s.to]
	if s.long == nil {
		s.long = bytes.Clone(unread[:kept+len(mark)])
		s.longAt = s.offset
		s.buffer = nil // a large buffer is not needed again
	}
	if n := len(unread); n > 0 {
		s.carriage = unread[n-1] == '\r'
	}
	s.offset += int64(len(unread))
	s.from, s.searched, s.to = 0, 0, 0
}

// mark is the UTF-8 byte-order mark.
var mark = []byte("\xef\xbb\xbf")

// trimByteOrderMark removes the byte-order mark from the first line of a file.
func trimByteOrderMark(text []byte, start int64) []byte {
	if start == 0 {
		return bytes.TrimPrefix(text, mark)
	}
	return text
}
