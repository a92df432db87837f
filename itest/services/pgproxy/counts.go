package pgproxy

// Counts is what went through a proxy. What belongs to the start of a
// connection is counted only as a connection.
type Counts struct {
	Connections int // started by clients; requests to cancel are none
	Refused     int // closed at once, see Proxy.Refuse

	// RoundTrips counts how often clients sent something after they had the
	// answer to all they had sent before. A pipeline is one round trip,
	// whatever number of Syncs it holds, as long as the client does not wait
	// within it: exactly, a round trip begins with a client's message (other
	// than Terminate) that the proxy reads while no request of that
	// connection is unanswered, and a request is answered when the last of
	// its replies (ReadyForQuery for Query and Sync) is written to the
	// client. Where a client writes a pipeline of several Syncs slowly, a
	// reply may overtake the rest of it; a latency on replies, longer than
	// the writing takes, makes the number exact there too.
	RoundTrips int

	Statements   int // that clients asked to run: each in a Query, and each Execute
	Requests     int // messages from clients
	Replies      int // messages from servers
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

// Counts returns what went through since the start, or since ResetCounts, of
// all connections together.
func (p *Proxy) Counts() Counts {
	all := p.sum()
	p.mu.Lock()
	defer p.mu.Unlock()
	return all.minus(p.counted)
}

// ResetCounts makes Counts begin at zero again.
func (p *Proxy) ResetCounts() {
	all := p.sum()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counted = all
}

// CountsByConnection returns what went through each connection that is open,
// by its number; ResetCounts does not change it.
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
