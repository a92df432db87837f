package simulator

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
)

// trouble is a kind of fault that a plan can switch on.
type trouble uint8

// The kinds. Each run has some of them, so that rare meetings of two happen.
const (
	troubleCrash trouble = iota
	troubleStop
	troubleRevoke
	troubleLose
	troubleOutage
	troubleElsewhere
	troubleBegin
	troubleCommit
	troubleUnknown
	troubleSettle
	troubleFetch
	troubleHandler
	troubleStuck
	troubleContent
	troubleCopies
	troubleTimer
	troubleRow
	troubleFreeze
	troubleClaim
	troublePerson
	troubleDue
	troubles
)

// plan is what a run is made of, drawn before it starts.
type plan struct {
	config machine.Config
	// has says which troubles there are; rate is once in how many times.
	has  [troubles]bool
	rate int
	// queue: the source counts deliveries and brings back single ones;
	// otherwise it is a log that starts again at the first unsettled.
	queue bool
	// whole: the handler takes the whole batch.
	whole bool
	// named: the store can name the busy mark and the culprit of a commit.
	named bool
	// broken: the shell asks after each handler whether the transaction lives.
	broken bool
	// prints: messages have fingerprints.
	prints bool
	// ends: the source has an end.
	ends bool

	// late: the source gives its lanes only after a minute, and is slow to end a
	// Fetch. idler: it can be asked whether it has more.
	late, idler bool

	// shared: some messages are not the consumer's.
	shared bool

	processes int // that share the store and the lanes

	// lease is of claims. notifies: what is due is told to others.
	lease    time.Duration
	notifies bool

	// streams is how many each of the two sources has whose versions the messages are;
	// 0: they have none.
	streams int

	// calls: handlers call a provider that knows a key for this window, and can be asked
	// what became of calls.
	calls, asks bool
	window      time.Duration

	// steps is how many each message has, 0: it has one handler. change is what becomes of
	// them, at a moment.
	steps    int
	change   change
	changeAt time.Duration

	// suppresses: some intents are written suppressed.
	suppresses bool

	// formers: messages are marked under former identities, too.
	formers bool

	// keep is how long what has ended is kept; 0: for ever.
	keep time.Duration

	// twins: persons act on rows of identities that have several.
	twins bool

	// clocks: the store's clock is wrong for a while.
	clocks bool

	// away: after the other faults the store goes away for good.
	away bool

	replaying

	lanes    int
	messages int
	span     time.Duration // of the phase with faults
	lag      time.Duration // the most that a call takes
	timeout  time.Duration // of a handler
}

// markLock is how long a mark waits for a copy in flight elsewhere.
const markLock = 50 * time.Millisecond

func drawPlan(c *choices) plan {
	p := plan{
		queue:     c.chance(2),
		whole:     c.chance(4),
		named:     c.flip(),
		broken:    c.flip(),
		prints:    c.often(4),
		ends:      c.flip(),
		processes: []int{1, 1, 2}[c.below(3)],

		lanes:    c.between(1, 4),
		messages: c.between(1, 120),
		span:     time.Duration(c.between(1, 12)) * time.Second,
		lag:      []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond}[c.below(3)],
		timeout:  time.Duration(c.between(1, 10)) * 200 * time.Millisecond,
		rate:     []int{30, 12, 5}[c.below(3)],
	}
	for i := range p.has {
		p.has[i] = c.flip()
	}
	p.away = p.has[troubleOutage] && c.chance(4)
	p.config = drawConfig(c)
	p.idler, p.shared = c.often(4), c.chance(2)
	if p.late = p.config.IdleExit > 0 && c.chance(5); p.late {
		p.span += time.Minute + 5*time.Second
		if c.flip() { // longer than the first Fetch may take to answer
			p.config.IdleExit = time.Minute + time.Duration(c.between(1, 20))*100*time.Millisecond
		}
	}
	if p.config.OneAttempt {
		p.config.Lanes = machine.NoOrder
		p.ends = false
	} else if c.flip() {
		p.drawInbox(c)
	}
	p.drawCalls(c)
	p.drawSteps(c)
	p.drawStreams(c)
	p.drawBlock()
	p.formers = p.prints && !p.config.Unmarked && !p.calls && p.streams == 0 && c.chance(2)
	p.drawReaping(c)
	p.drawReplays(c)
	p.drawTwins()
	p.drawClocks()
	return p
}

func drawConfig(c *choices) machine.Config {
	hold := time.Duration(c.between(1, 5)) * time.Second
	conf := machine.Config{
		Lanes:           []machine.Lanes{machine.Partition, machine.Key, machine.NoOrder}[c.below(3)],
		Workers:         c.between(1, 8),
		Most:            c.between(1, 32),
		BatchTime:       time.Duration(c.between(1, 10)) * 5 * time.Millisecond,
		MaxInMemoryWait: hold,
		MaxMessages:     c.between(1, 60),
		MaxBytes:        int64(c.between(1, 40)) * 200,
		Drain:           time.Duration(c.between(1, 30)) * 100 * time.Millisecond,
		MaxAttempts:     c.between(1, 5),
		InitialDelay:    time.Duration(c.between(1, 20)) * 10 * time.Millisecond,
		MaxDelay:        hold / time.Duration(c.between(1, 4)),
		RetryCost:       c.wait(500 * time.Millisecond),
		RetrySaved:      c.wait(5 * time.Second),
		TrialAfter:      1000,
		BackoffFirst:    time.Duration(c.between(1, 10)) * 10 * time.Millisecond,
		BackoffMost:     time.Duration(c.between(1, 5)) * time.Second,
		Unmarked:        c.chance(5),
		OneAttempt:      c.chance(6),
		Seed:            uint64(c.below(1 << 16)),
	}
	conf.RetryShare = conf.RetryCost / time.Duration(c.between(1, 20))
	if c.flip() {
		conf.TrialAfter = c.between(1, 6)
	}
	if c.flip() {
		conf.SerialFor = c.wait(2 * time.Second)
	}
	conf.OneWriter = c.chance(5)
	breaks(&conf)
	drawEndings(c, &conf)
	if c.chance(3) {
		conf.IdleExit = time.Duration(c.between(1, 20)) * 100 * time.Millisecond
	}
	return conf
}

// drawInbox lets the consumer have an inbox.
func (p *plan) drawInbox(c *choices) {
	conf := &p.config
	conf.Inbox, conf.Wait = true, !conf.Unmarked
	conf.Poll = time.Duration(c.between(1, 10)) * 500 * time.Millisecond
	p.lease, p.notifies = time.Duration(c.between(1, 20))*150*time.Millisecond, c.flip()
	if conf.Wait && c.flip() {
		conf.Keep, conf.Receive = true, c.flip()
	}
}

func drawEndings(c *choices, conf *machine.Config) {
	pick := func(of ...machine.Ending) machine.Ending { return of[c.below(len(of))] }
	setAside := machine.EndPark
	if c.chance(3) && !conf.OneAttempt {
		setAside = machine.EndDeadLetter
	}
	conf.OnExhausted = pick(machine.EndPark, setAside, machine.EndHalt)
	conf.OnConflict = pick(machine.EndPark, machine.EndKeepFirst, setAside, machine.EndHalt)
	conf.OnBadIdentity = pick(machine.EndPark, setAside, machine.EndHalt)
	conf.OnFiltered = pick(machine.EndSkip, machine.EndSkip, machine.EndPark, setAside)
	conf.OnPrecondition = pick(setAside, machine.EndDiscard, machine.EndRetry)
}

// calmed returns the policy an operator would choose for the calm phase:
// nothing halts, because a message that halts would do so for ever.
func calmed(c machine.Config) machine.Config {
	for _, then := range []*machine.Ending{&c.OnExhausted, &c.OnConflict, &c.OnBadIdentity, &c.OnPrecondition} {
		if *then == machine.EndHalt {
			*then = machine.EndPark
		}
	}
	return c
}
