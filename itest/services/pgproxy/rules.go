package pgproxy

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// Message is a message that rules and watchers get: a request to run a statement (Query or
// Execute), or the reply that ends one (CommandComplete, EmptyQueryResponse, PortalSuspended or
// ErrorResponse).
type Message struct {
	Connection int       // its number, from 1 in the order of arrival (a request to cancel takes one)
	Direction  Direction // Request or Reply
	Type       byte      // as the protocol writes it: Q, E · C, I, s, E
	// SQL is the text of the statement that is run or answered. For Execute it is the
	// statement of the portal. For Query it is the whole text in a request, and the single
	// answered statement in a reply.
	SQL string
	Tag string // of CommandComplete, such as "INSERT 0 1"; else empty
}

// Failed is set if the message is the server's error for the statement.
func (m Message) Failed() bool { return m.Direction == Reply && m.Type == 'E' }

// Match chooses messages. Match is called from the goroutines that forward, concurrently for
// different connections, and must not block.
type Match func(Message) bool

// Commit chooses the requests to commit (also a Query that contains a COMMIT among others) and
// their replies: success, the ROLLBACK that answers a COMMIT of a failed transaction, and
// errors.
func Commit(m Message) bool {
	for _, s := range statements(m.SQL) {
		words := strings.Fields(strings.ToLower(s))
		if len(words) == 0 || words[0] != "commit" && words[0] != "end" {
			continue
		}
		if len(words) == 1 || words[1] != "prepared" {
			return true
		}
	}
	return false
}

// Containing chooses the messages whose statement contains this text literally.
func Containing(text string) Match {
	return func(m Message) bool { return strings.Contains(m.SQL, text) }
}

// Nth chooses only the n-th of the messages that match chooses, counted from 1.
func Nth(n int, match Match) Match {
	var mu sync.Mutex
	return func(m Message) bool {
		if !match(m) {
			return false
		}
		mu.Lock()
		defer mu.Unlock()
		n--
		return n == 0
	}
}

type action int

const (
	forwardIt action = iota
	cutBefore
	cutAfter
	hold
)

// Rule is an action for the messages that a Match chooses. Rule applies until it is removed. If
// several rules choose a message, the oldest applies.
type Rule struct {
	proxy     *Proxy
	direction Direction
	match     Match
	do        action
	first     chan struct{} // closed at the first hit
	released  chan struct{} // closed by Remove

	mu   sync.Mutex
	hits int
}

// CutRequest closes the connection before the request is forwarded. The server gets the
// messages before the request, but not the request. A transaction that it would have committed
// is rolled back.
func (p *Proxy) CutRequest(match Match) *Rule { return p.rule(Request, match, cutBefore) }

// CutInFlight forwards the request and closes the client's side at once. The server executes
// the request now or later, and the client cannot know.
func (p *Proxy) CutInFlight(match Match) *Rule { return p.rule(Request, match, cutAfter) }

// CutReply forwards the request, waits for the reply, drops the reply and everything after it,
// and closes the connection. The server is done, and the client cannot know. Earlier replies of
// the same pipeline reach the client.
func (p *Proxy) CutReply(match Match) *Rule { return p.rule(Reply, match, cutBefore) }

// HoldRequest holds the request, and everything after it, until the rule is removed.
func (p *Proxy) HoldRequest(match Match) *Rule { return p.rule(Request, match, hold) }

// HoldReply holds the reply, and everything after it, until the rule is removed. The client can
// still send.
func (p *Proxy) HoldReply(match Match) *Rule { return p.rule(Reply, match, hold) }

func (p *Proxy) rule(d Direction, match Match, do action) *Rule {
	r := &Rule{proxy: p, direction: d, match: match, do: do, first: make(chan struct{}), released: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return r
}

// Hits returns the number of messages that the rule was applied to.
func (r *Rule) Hits() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hits
}

// Wait returns nil when the rule has met its first message, or ctx's error. By then a message
// that is held is held, but a connection that is cut may not be closed yet.
func (r *Rule) Wait(ctx context.Context) error {
	select {
	case <-r.first:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Remove ends the rule and forwards the messages that it holds. Remove may be called again.
func (r *Rule) Remove() {
	p := r.proxy
	p.mu.Lock()
	i := slices.Index(p.rules, r)
	if i >= 0 {
		p.rules = slices.Delete(slices.Clone(p.rules), i, i+1)
	}
	p.mu.Unlock()
	if i >= 0 {
		close(r.released)
	}
}

func (r *Rule) hit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hits++
	if r.hits == 1 {
		close(r.first)
	}
}

// judge passes a message to the watchers and returns the rule for it, or nil.
func (p *Proxy) judge(m Message) *Rule {
	p.mu.Lock()
	rules, watchers := p.rules, p.watchers
	p.mu.Unlock()
	for _, seen := range watchers {
		seen(m)
	}
	for _, r := range rules {
		if r.direction == m.Direction && r.match(m) {
			r.hit()
			return r
		}
	}
	return nil
}
