package pgproxy

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// Message is a message that rules and watchers get. A Message is either a request to run a statement (Query or
// Execute), or the last reply to a statement (CommandComplete, EmptyQueryResponse, PortalSuspended or ErrorResponse).
type Message struct {
	Connection int       // number of the connection, from 1 in the order of arrival; a request to cancel also has a number
	Direction  Direction // Request or Reply
	Type       byte      // type byte in the protocol: Q or E for requests; C, I, s or E for replies
	// SQL is the text of the statement that is run or answered. For Execute, SQL is the statement of the portal. For
	// Query, SQL is the whole text in a request, and the single answered statement in a reply.
	SQL string
	Tag string // command tag of a CommandComplete, such as "INSERT 0 1"; otherwise empty
}

// Failed reports whether the message is the server's error for the statement.
func (m Message) Failed() bool { return m.Direction == Reply && m.Type == 'E' }

// Match reports whether a rule applies to a message. The goroutines that forward messages call a Match, concurrently
// for different connections, so a Match must not block.
type Match func(Message) bool

// Commit matches requests to commit, including a Query with COMMIT among other statements. Commit also matches the
// replies to requests to commit: success, an error, or the ROLLBACK that answers a COMMIT of a failed transaction.
func Commit(m Message) bool {
	for _, s := range splitStatements(m.SQL) {
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

// Containing returns a Match for messages whose statement contains the text literally.
func Containing(text string) Match {
	return func(m Message) bool { return strings.Contains(m.SQL, text) }
}

// Nth returns a Match for only one message: the n-th message that the parameter match matches, counted from 1.
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

// Rule is an action for the messages that a Match matches. The rule applies until it is removed. If several
// rules match a message, the oldest rule applies.
type Rule struct {
	proxy     *Proxy
	direction Direction
	match     Match
	do        action
	first     chan struct{} // closed when the rule applies for the first time
	released  chan struct{} // closed by Remove

	mu   sync.Mutex
	hits int
}

// CutRequest closes the connection before the request is forwarded. The server gets the earlier messages but
// not the request. A transaction that the request would have committed is rolled back.
func (p *Proxy) CutRequest(match Match) *Rule { return p.rule(Request, match, cutBefore) }

// CutInFlight forwards the request and closes the client's side at once. The server executes the request, but the
// client does not learn about it.
func (p *Proxy) CutInFlight(match Match) *Rule { return p.rule(Request, match, cutAfter) }

// CutReply forwards the request, waits for the reply, drops the reply and all later messages, and closes the
// connection. The server has executed the request, but the client does not learn about it. Earlier replies of the same
// pipeline reach the client.
func (p *Proxy) CutReply(match Match) *Rule { return p.rule(Reply, match, cutBefore) }

// HoldRequest holds the request and all later requests of its connection until the rule is removed.
func (p *Proxy) HoldRequest(match Match) *Rule { return p.rule(Request, match, hold) }

// HoldReply holds the reply and all later replies of its connection until the rule is removed. The client can
// still send.
func (p *Proxy) HoldReply(match Match) *Rule { return p.rule(Reply, match, hold) }

func (p *Proxy) rule(d Direction, match Match, do action) *Rule {
	r := &Rule{proxy: p, direction: d, match: match, do: do, first: make(chan struct{}), released: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = append(p.rules, r)
	return r
}

// Hits returns the number of messages to which the rule was applied.
func (r *Rule) Hits() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hits
}

// Wait returns nil when the rule has been applied for the first time, or the error of ctx. If the rule holds messages,
// the message is on hold when Wait returns. If the rule cuts the connection, the connection may still be open for a
// moment.
func (r *Rule) Wait(ctx context.Context) error {
	select {
	case <-r.first:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Remove removes the rule, and forwards the messages that the rule was holding. Remove may be called again.
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

// judge passes a message to the functions that Watch registered. The result is the rule that matches the message, or
// nil.
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
