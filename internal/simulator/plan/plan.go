package plan

import (
	"time"

	"github.com/semel-go/semel/internal/machine"
	"github.com/semel-go/semel/internal/simulator/chance"
)

// Plan is the policy, the faults and the features of a run. A Plan is drawn before the run starts.
type Plan struct {
	Config machine.Config
	// Has contains the kinds of faults that happen in a run. Each kind happens at one of Rate opportunities, on
	// average.
	Has  [Troubles]bool
	Rate int
	// Queue is true if the source is a queue, which counts deliveries and redelivers single messages. If Queue is
	// false, the source is a log, which starts again at the first delivery that is not acked.
	Queue bool
	// Whole is true if the handler takes the whole batch.
	Whole bool
	// Named is true if the store can name the marker that is locked, and the message that made a commit fail.
	Named bool
	// Broken is true if the consumer asks the store after each handler whether the transaction is broken.
	Broken bool
	// Prints is true if messages have fingerprints.
	Prints bool
	// Ends is true if the source has an end.
	Ends bool

	// Late is true if the source assigns its lanes only after a minute and ends a Fetch slowly. Idler is true if the
	// source can report whether it has more messages (source.Info.Idle).
	Late, Idler bool

	// Shared is true if some messages belong to another consumer.
	Shared bool

	Processes int // number of processes that share the store and the lanes

	// Lease is the lease of claims. Notifies is true if processes are notified of rows that can be claimed.
	Lease    time.Duration
	Notifies bool

	// Streams is the number of streams in each of the two sources of identities, or 0 if messages have no versions.
	Streams int

	// Calls is true if handlers call a provider. The provider remembers a key for the time Window. If asks is
	// true, the provider can report the outcome of a call.
	Calls, asks bool
	Window      time.Duration

	// Steps is the number of steps of each message, or 0 if messages have one handler. At the time ChangeAt, a new
	// release makes the change Change to the steps.
	Steps    int
	Change   change
	ChangeAt time.Duration

	// Suppresses is true if some intents are suppressed when they are written.
	Suppresses bool

	// Formers is true if messages also have previous identities.
	Formers bool

	// Keep is how long the markers of ended messages are kept, or 0 if they are never removed.
	Keep time.Duration

	// Twins is true if persons act on rows of identities that have several rows.
	Twins bool

	// Clocks is true if the store's clock is wrong for some time.
	Clocks bool

	// Canary is true if the first success of some messages is rolled back on purpose.
	Canary bool

	// Away is true if the store stays down at the end of the phase with faults.
	Away bool

	replaying

	Lanes    int
	Messages int
	Span     time.Duration // duration of the phase with faults
	Lag      time.Duration // longest duration of a call
	Timeout  time.Duration // timeout of a handler
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
		if c.Flip() { // longer than the first Fetch may take to return
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
	p.drawCanary()
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

// Calmed returns the policy for the calm phase. In the calm phase no message halts the consumer, because the same
// message would halt each new process.
func Calmed(c machine.Config) machine.Config {
	for _, then := range []*machine.Ending{&c.OnExhausted, &c.OnConflict, &c.OnBadIdentity, &c.OnPrecondition} {
		if *then == machine.EndHalt {
			*then = machine.EndPark
		}
	}
	return c
}

// breaks decides whether the consumer has a circuit breaker. The choice depends on the seed's number and takes
// no random number, so the histories of seeds without a breaker stay the same.
func breaks(conf *machine.Config) {
	if conf.Seed%4 == 1 {
		conf.BreakerThreshold, conf.HaltLater = 1+int(conf.Seed/4%4), conf.Seed/16%2 == 0
	}
}
