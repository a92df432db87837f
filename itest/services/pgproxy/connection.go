package pgproxy

import (
	"bufio"
	"io"
	"net"
	"sync"
	"time"
)

// The number of bytes after which collected messages are forwarded, even if more can be read.
const most = 32 << 10

// connection is the connection of one client. In each direction, one goroutine reads and another goroutine writes. A
// queue connects the two goroutines, so that a delay does not block the reader.
type connection struct {
	proxy  *Proxy
	number int
	target string
	client net.Conn

	toServer, toClient chan chunk
	done               chan struct{} // closed when both sides are closed

	// mu protects the fields below. mu is not held during a read or a write.
	mu      sync.Mutex
	server  net.Conn
	over    bool
	cut     bool // the connection was cut: messages that arrive are dropped
	track   *tracker
	running bool // a round trip has begun and has not ended
	total   Counts
}

// chunk is a group of messages that are written together.
type chunk struct {
	due      time.Time
	bytes    []byte
	answered uint64 // the tracker's field answered after these messages
	last     bool   // the last chunk: after the writer has got this chunk, the other side reads the end of the connection
}

func newConnection(p *Proxy, number int, client net.Conn, target string) *connection {
	return &connection{
		proxy: p, number: number, client: client, target: target,
		toServer: make(chan chunk, 256), toClient: make(chan chunk, 256),
		done: make(chan struct{}), track: newTracker(),
	}
}

// adopt sets the connection to the server. The result is false if the client's connection has ended.
func (c *connection) adopt(server net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server = server
	return !c.over
}

// closeBoth closes the connections to the client and to the server. closeBoth may be called several times and from any
// goroutine.
func (c *connection) closeBoth() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	close(c.done)
	_ = c.client.Close()
	if c.server != nil {
		_ = c.server.Close()
	}
}

// forward serves the connection until it ends. The parameter first is the client's startup message.
func (c *connection) forward(first []byte) {
	c.mu.Lock()
	c.total.Connections++
	c.mu.Unlock()
	c.toServer <- chunk{bytes: first}
	var all sync.WaitGroup
	for _, part := range []func(){
		func() { c.pass(c.client, c.toServer, Request) },
		func() { c.pass(c.server, c.toClient, Reply) },
		func() { c.deliver(c.server, c.toServer) },
		func() { c.deliver(c.client, c.toClient) },
	} {
		all.Go(part)
	}
	all.Wait()
}

// pass reads the messages of one direction until the connection from that side ends.
func (c *connection) pass(from net.Conn, to chan<- chunk, d Direction) {
	defer c.push(to, chunk{last: true})
	r := bufio.NewReaderSize(from, most)
	var gathered []byte
	for {
		start := len(gathered)
		var err error
		if gathered, err = readMessage(r, gathered); err != nil {
			c.push(to, chunk{bytes: gathered[:start]})
			return
		}
		rule, answered := c.note(d, gathered[start:])
		if rule != nil {
			c.push(to, chunk{bytes: gathered[:start]})
			gathered = gathered[start:]
			if !c.obey(rule, d, &gathered) {
				continue
			}
		}
		if r.Buffered() == 0 || len(gathered) > most || rule != nil {
			c.push(to, chunk{bytes: gathered, answered: answered})
			gathered = nil
		}
	}
}

// obey applies a rule to the last message in gathered. The result is false if the message must not be forwarded.
func (c *connection) obey(r *Rule, d Direction, gathered *[]byte) bool {
	if r.do == hold {
		select {
		case <-r.released:
		case <-c.done:
		}
		return true
	}
	c.sever() // cut the client's connection before the server can answer
	if r.do == cutAfter {
		c.queue(c.toServer, chunk{bytes: *gathered})
	}
	*gathered = nil
	c.queue(c.toServer, chunk{last: true})
	c.queue(c.toClient, chunk{last: true})
	return false
}

// sever stops forwarding and drops all later messages.
func (c *connection) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = true
}

// push passes a chunk to the writer, unless the connection was cut or has ended.
func (c *connection) push(to chan<- chunk, k chunk) {
	if len(k.bytes) == 0 && !k.last || c.wasCut() {
		return
	}
	c.queue(to, k)
}

// queue passes a chunk to the writer, unless the connection has ended.
func (c *connection) queue(to chan<- chunk, k chunk) {
	d := Request
	if to == c.toClient {
		d = Reply
	}
	if delay := c.proxy.delay(d); delay > 0 {
		k.due = time.Now().Add(delay)
	}
	select {
	case to <- k:
	case <-c.done:
	}
}

func (c *connection) wasCut() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// deliver writes the queued chunks, each chunk when it is due, until the queue is closed.
func (c *connection) deliver(to net.Conn, queue <-chan chunk) {
	for {
		var k chunk
		select {
		case k = <-queue:
		case <-c.done:
			return
		}
		if !c.waitUntil(k.due) {
			return
		}
		if k.last {
			_ = to.(*net.TCPConn).CloseWrite()
			return
		}
		c.settle(k.answered)
		if _, err := to.Write(k.bytes); err != nil {
			c.closeBoth()
			return
		}
	}
}

// The length of the last part of a wait. The end of the connection does not shorten the last part.
const exactly = 5 * time.Millisecond

// waitUntil waits until it is the time in the parameter due. The result is false if the connection ends first.
func (c *connection) waitUntil(due time.Time) bool {
	if due.IsZero() {
		return true
	}
	if early := time.Until(due) - exactly; early > 0 {
		timer := time.NewTimer(early)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.done:
			return false
		}
	}
	for rest := time.Until(due); rest > 0; rest = time.Until(due) {
		pause(rest)
	}
	return true
}

// note passes a message to the tracker, the counters, the watchers and the rules. The results are the rule for the
// message, or nil, and the number of the last answered request.
func (c *connection) note(d Direction, message []byte) (*Rule, uint64) {
	m, asks, answered := c.count(d, message)
	if !asks {
		return nil, answered
	}
	return c.proxy.judge(m), answered
}

func (c *connection) count(d Direction, message []byte) (m Message, asks bool, answered uint64) {
	kind, body := message[0], message[5:]
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return m, false, 0
	}
	m = Message{Connection: c.number, Direction: d, Type: kind}
	started := c.track.hasStarted()
	if d == Reply {
		m.SQL, asks = c.track.recordReceived(kind)
		if asks && kind == 'C' {
			m.Tag, _ = text(body)
		}
	} else if started {
		var n int
		m.SQL, n = c.track.recordSent(kind, body)
		c.total.Statements += n
		asks = kind == 'Q' || kind == 'E'
	}
	if started {
		c.tally(d, kind, len(message))
	}
	return m, asks, c.track.answered
}

func (c *connection) tally(d Direction, kind byte, size int) {
	if d == Reply {
		c.total.Replies++
		c.total.ReplyBytes += size
		return
	}
	c.total.Requests++
	c.total.RequestBytes += size
	if !c.running && kind != 'X' {
		c.running = true
		c.total.RoundTrips++
	}
}

// settle ends the round trip if, with the bytes that are written next, all requests are answered.
func (c *connection) settle(answered uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if answered > 0 && answered == c.track.asked {
		c.running = false
	}
}

func (c *connection) counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// readMessage reads one message and appends it to b.
func readMessage(r *bufio.Reader, b []byte) ([]byte, error) {
	start := len(b)
	header, err := r.Peek(5)
	if err != nil {
		return b, err
	}
	size := length(header[1:])
	if size < 4 {
		return b, errNotTheProtocol
	}
	b = append(b, make([]byte, 1+size)...)
	_, err = io.ReadFull(r, b[start:])
	return b, err
}
