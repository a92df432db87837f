package pgproxy

import "bytes"

// pendingRequest is a request that the server has not answered completely.
type pendingRequest struct {
	kind   byte     // type byte in the protocol; 0 means the start of the connection
	texts  []string // texts of the statements of a Query, or of the one statement of an Execute
	done   int      // number of statements that are answered
	number uint64   // number of the request, from 1 on each connection
}

// endsAtReady reports whether ReadyForQuery is the last reply to the request.
func (a pendingRequest) endsAtReady() bool {
	return a.kind == 'Q' || a.kind == 'S' || a.kind == 'F' || a.kind == 0
}

// currentStatement returns the text of the statement that the next reply answers.
func (a pendingRequest) currentStatement() string {
	if a.done < len(a.texts) {
		return a.texts[a.done]
	}
	return ""
}

// tracker follows the messages of one connection and determines which request each reply answers. A tracker implements
// the message flow in the PostgreSQL manual's chapter on the frontend/backend protocol.
type tracker struct {
	prepared map[string]string // texts by the name of the prepared statement
	portals  map[string]string // texts by the name of the portal
	queue    []pendingRequest
	asked    uint64 // number of the last request
	answered uint64 // number of the last request that was answered
	skipping bool   // the server ignores messages until it receives a Sync
}

func newTracker() *tracker {
	return &tracker{prepared: map[string]string{}, portals: map[string]string{}, queue: []pendingRequest{{number: 1}}, asked: 1}
}

func (t *tracker) hasStarted() bool { return t.answered > 0 }

// recordSent records a client's message. The results are the number of statements that the message runs, and the
// text of the statements.
func (t *tracker) recordSent(kind byte, body []byte) (sql string, count int) {
	switch kind {
	case 'P':
		name, rest := text(body)
		t.prepared[name], _ = text(rest)
	case 'B':
		portal, rest := text(body)
		name, _ := text(rest)
		t.portals[portal] = t.prepared[name]
	case 'C':
		t.forget(body)
	case 'E':
		portal, _ := text(body)
		sql = t.portals[portal]
		t.await(kind, sql)
		return sql, 1
	case 'Q':
		sql, _ = text(body)
		texts := splitStatements(sql)
		t.await(kind, texts...)
		return sql, len(texts)
	}
	if bytes.IndexByte([]byte("PBCDSF"), kind) >= 0 {
		t.await(kind)
	}
	return "", 0
}

func (t *tracker) await(kind byte, texts ...string) {
	if kind == 'S' {
		t.skipping = false
	}
	if t.skipping {
		return
	}
	t.asked++
	t.queue = append(t.queue, pendingRequest{kind: kind, texts: texts, number: t.asked})
}

func (t *tracker) forget(body []byte) {
	if len(body) == 0 {
		return
	}
	name, _ := text(body[1:])
	if body[0] == 'S' {
		delete(t.prepared, name)
	} else {
		delete(t.portals, name)
	}
}

// recordReceived records a server's message. The result ends is true if the message is the last reply to a
// statement. The result sql is the text of the answered statement.
func (t *tracker) recordReceived(kind byte) (sql string, ends bool) {
	if len(t.queue) == 0 {
		return "", false
	}
	head := &t.queue[0]
	switch kind {
	case '1', '2', '3':
		t.pop()
	case 'T', 'n':
		if head.kind == 'D' {
			t.pop()
		}
	case 'C', 'I', 's':
		sql = head.currentStatement()
		head.done++
		if head.kind == 'E' {
			t.pop()
		}
		return sql, true
	case 'E':
		sql, ends = head.currentStatement(), len(head.texts) > 0
		if !head.endsAtReady() {
			t.fail()
		}
		return sql, ends
	case 'Z':
		for !t.queue[0].endsAtReady() && len(t.queue) > 1 {
			t.pop()
		}
		t.pop()
	}
	return "", false
}

// fail drops the requests that the server ignores after an error: all requests before the next Sync. The client may not
// have sent the next Sync yet.
func (t *tracker) fail() {
	for len(t.queue) > 0 {
		if t.queue[0].kind == 'S' {
			return
		}
		t.pop()
	}
	t.skipping = true
}

func (t *tracker) pop() {
	t.answered = t.queue[0].number
	t.queue = t.queue[1:]
}

// text returns the string before the first zero byte, and the bytes after this zero byte.
func text(body []byte) (string, []byte) {
	s, rest, _ := bytes.Cut(body, []byte{0})
	return string(s), rest
}
