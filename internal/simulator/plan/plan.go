package plan

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/chance"
)

// Plan is the policy, the faults and the features of a run. Plan is drawn before the run
// starts.
type Plan struct {
	Config machine.Config
	// Has says which troubles happen. Each happens once in Rate opportunities, on average.
	Has  [Troubles]bool
	Rate int
	// Queue: the source counts deliveries and redelivers single ones. Otherwise it is a log that starts again at
	// the first unsettled delivery.
	Queue bool
	// Whole: the handler takes the whole batch.
	Whole bool
	// Named: the store can name the mark that is busy, and the message that made a commit fail.
	Named bool
	// Broken: the consumer asks after each handler whether the transaction is broken.
	Broken bool
	// Prints: messages have fingerprints.
	Prints bool
	// Ends: the source has an end.
	Ends bool

	// Late: the source assigns its lanes only after a minute, and is slow to end a Fetch. Idler: the source can
	// report whether it has more.
	Late, Idler bool

	// Shared: some messages belong to another consumer.
	Shared bool

	Processes int // that share the store and the lanes

	// Lease is the lease of claims. Notifies: processes are notified of due rows.
	Lease    time.Duration
	Notifies bool

	// Streams is the number of streams of each of the two sources; 0 if messages have no versions.
	Streams int

	// Calls: handlers call a provider that remembers a key for Window and, with asks, can report the outcome of
	// a call.
	Calls, asks bool
	Window      time.Duration

	// Steps is the number of steps of each message; 0 if there is one handler. Change is made to the steps at
	// ChangeAt.
	Steps    int
	Change   change
	ChangeAt time.Duration

	// Suppresses: some intents are written suppressed.
	Suppresses bool

	// Formers: messages are also marked under former identities.
	Formers bool

	// Keep is how long ended messages are kept; 0 if they are never removed.
	Keep time.Duration

	// Twins: persons act on rows of identities that have several rows.
	Twins bool

	// Clocks: the store's clock is wrong for a while.
	Clocks bool

	// Away: after the other faults the store stays down for good.
	Away bool

	replaying

	Lanes    int
	Messages int
	Span     time.Duration // of the phase with faults
	Lag      time.Duration // the most that a call takes
	Timeout  time.Duration // of a handler
}

// Draw draws a plan.
func Draw(c *chance.Choices) Plan {
	p := Plan{
		Queue:     c.Chance(2),
		Whole:     c.Chance(4),
		Named:     c.Flip(),
		Broken:    c.Flip(),
		Prints:    c.Often(4),
		Ends:      c.Flip(),
		Processes: []int{1, 1, 2}[c.Below(3)],

		Lanes:    c.Between(1, 4),
		Messages: c.Between(1, 120),
		Span:     time.Duration(c.Between(1, 12)) * time.Second,
		Lag:      []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond}[c.Below(3)],
		Timeout:  time.Duration(c.Between(1, 10)) * 200 * time.Millisecond,
		Rate:     []int{30, 12, 5}[c.Below(3)],
	}
	for i := range p.Has {
		p.Has[i] = c.Flip()
	}
	p.Away = p.Has[TroubleOutage] && c.Chance(4)
	p.Config = DrawConfig(c)
	p.Idler, p.Shared = c.Often(4), c.Chance(2)
	if p.Late = p.Config.IdleExit > 0 && c.Chance(5); p.Late {
		p.Span += time.Minute + 5*time.Second
		if c.Flip() { // longer than the first Fetch may take to answer
			p.Config.IdleExit = time.Minute + time.Duration(c.Between(1, 20))*100*time.Millisecond
		}
	}
	if p.Config.OneAttempt {
		p.Config.Lanes = machine.NoOrder
		p.Ends = false
	} else if c.Flip() {
		p.DrawInbox(c)
	}
	p.drawCalls(c)
	p.drawSteps(c)
	p.drawStreams(c)
	p.drawBlock()
	p.Formers = p.Prints && !p.Config.Unmarked && !p.Calls && p.Streams == 0 && c.Chance(2)
	p.drawReaping(c)
	p.drawReplays(c)
	p.drawTwins()
	p.drawClocks()
	return p
}

// DrawConfig draws the policy of a consumer.
func DrawConfig(c *chance.Choices) machine.Config {
	hold := time.Duration(c.Between(1, 5)) * time.Second
	conf := machine.Config{
		Lanes:           []machine.Lanes{machine.Partition, machine.Key, machine.NoOrder}[c.Below(3)],
		Workers:         c.Between(1, 8),
		Most:            c.Between(1, 32),
		BatchTime:       time.Duration(c.Between(1, 10)) * 5 * time.Millisecond,
		MaxInMemoryWait: hold,
		MaxMessages:     c.Between(1, 60),
		MaxBytes:        int64(c.Between(1, 40)) * 200,
		Drain:           time.Duration(c.Between(1, 30)) * 100 * time.Millisecond,
		MaxAttempts:     c.Between(1, 5),
		InitialDelay:    time.Duration(c.Between(1, 20)) * 10 * time.Millisecond,
		MaxDelay:        hold / time.Duration(c.Between(1, 4)),
		RetryCost:       c.Wait(500 * time.Millisecond),
		RetrySaved:      c.Wait(5 * time.Second),
		TrialAfter:      1000,
		BackoffFirst:    time.Duration(c.Between(1, 10)) * 10 * time.Millisecond,
		BackoffMost:     time.Duration(c.Between(1, 5)) * time.Second,
		Unmarked:        c.Chance(5),
		OneAttempt:      c.Chance(6),
		Seed:            uint64(c.Below(1 << 16)),
	}
	conf.RetryShare = conf.RetryCost / time.Duration(c.Between(1, 20))
	if c.Flip() {
		conf.TrialAfter = c.Between(1, 6)
	}
	if c.Flip() {
		conf.SerialFor = c.Wait(2 * time.Second)
	}
	conf.OneWriter = c.Chance(5)
	breaks(&conf)
	drawEndings(c, &conf)
	if c.Chance(3) {
		conf.IdleExit = time.Duration(c.Between(1, 20)) * 100 * time.Millisecond
	}
	return conf
}

func drawEndings(c *chance.Choices, conf *machine.Config) {
	pick := func(of ...machine.Ending) machine.Ending { return of[c.Below(len(of))] }
	setAside := machine.EndPark
	if c.Chance(3) && !conf.OneAttempt {
		setAside = machine.EndDeadLetter
	}
	conf.OnExhausted = pick(machine.EndPark, setAside, machine.EndHalt)
	conf.OnConflict = pick(machine.EndPark, machine.EndKeepFirst, setAside, machine.EndHalt)
	conf.OnBadIdentity = pick(machine.EndPark, setAside, machine.EndHalt)
	conf.OnFiltered = pick(machine.EndSkip, machine.EndSkip, machine.EndPark, setAside)
	conf.OnPrecondition = pick(setAside, machine.EndDiscard, machine.EndRetry)
}

// Calmed returns the policy for the calm phase. Nothing halts, because a message that halts the consumer would
// halt it in every life.
func Calmed(c machine.Config) machine.Config {
	for _, then := range []*machine.Ending{&c.OnExhausted, &c.OnConflict, &c.OnBadIdentity, &c.OnPrecondition} {
		if *then == machine.EndHalt {
			*then = machine.EndPark
		}
	}
	return c
}

// breaks decides whether the consumer has a breaker. breaks draws no number, so that the other seeds keep
// their histories.
func breaks(conf *machine.Config) {
	if conf.Seed%4 == 1 {
		conf.BreakerThreshold, conf.HaltLater = 1+int(conf.Seed/4%4), conf.Seed/16%2 == 0
	}
}
