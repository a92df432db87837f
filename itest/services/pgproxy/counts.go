package pgproxy

// Counts are the numbers of forwarded connections, statements and messages. The startup of a connection counts only as
// a connection.
type Counts struct {
	Connections int // started by clients; connections with a request to cancel do not count
	Refused     int // closed at once because of Proxy.Refuse

	// RoundTrips is the number of times that a client sent something after it had received all replies. A pipeline is
	// one round trip with any number of Syncs, as long as the client does not wait within it.
	//
	// In detail: a round trip begins with a client's message that the proxy reads while all earlier requests of the
	// connection are answered. Terminate does not count. A request is answered when the last of its replies is written
	// to the client; for Query and Sync, the last reply is ReadyForQuery. If a client writes a pipeline of several
	// Syncs slowly, a reply may reach the client before the rest of the pipeline is written. With a latency on replies
	// that is longer than the writing, the number is also exact in this case.
	RoundTrips int

	Statements   int // statements that clients sent: each statement in a Query, and each Execute
	Requests     int // number of messages from clients
	Replies      int // number of messages from servers
	RequestBytes int
	ReplyBytes   int
}

func (c Counts) plus(o Counts) Counts {
	c.Connections += o.Connections
	c.Refused += o.Refused
	c.RoundTrips += o.RoundTrips
	c.Statements += o.Statements
	c.Requests += o.Requests
	c.Replies += o.Replies
	c.RequestBytes += o.RequestBytes
	c.ReplyBytes += o.ReplyBytes
	return c
}

func (c Counts) minus(o Counts) Counts {
	return c.plus(Counts{-o.Connections, -o.Refused, -o.RoundTrips, -o.Statements, -o.Requests, -o.Replies, -o.RequestBytes, -o.ReplyBytes})
}

// Counts returns the sums over all connections since the start or the last ResetCounts.
func (p *Proxy) Counts() Counts {
	all := p.sum()
	p.mu.Lock()
	defer p.mu.Unlock()
	return all.minus(p.counted)
}

// ResetCounts sets Counts back to zero.
func (p *Proxy) ResetCounts() {
	all := p.sum()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counted = all
}

// CountsByConnection returns the counts of each open connection by its number. ResetCounts does not change the results
// of CountsByConnection.
func (p *Proxy) CountsByConnection() map[int]Counts {
	all := map[int]Counts{}
	for _, c := range p.open() {
		all[c.number] = c.counts()
	}
	return all
}

func (p *Proxy) sum() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	sum := p.ended
	for c := range p.conns {
		sum = sum.plus(c.counts())
	}
	return sum
}
