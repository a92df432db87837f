package simulator

import (
	"strconv"
	"time"

	"github.com/semel-go/semel"
)

// conduct is how a handler treats a message.
type conduct uint8

const (
	succeeds conduct = iota
	failsRetryable
	failsWithWait
	asksTooLong
	failsForGood
	asksPark
	asksDiscard
	saysDuplicate
	findsUnmet
	breaksQuietly // the transaction is broken; who comes after it sees it
	failsAtCommit
	sticks
	meetsContention
	meetsDown
	unknownType // there is no handler for it
	// alwaysContends and alwaysDown: what it does itself always ends its
	// transaction as if others or the store were to blame.
	alwaysContends
	alwaysDown
)

var conductNames = [...]string{"ok", "retryable", "with wait", "too long", "permanent", "park", "discard",
	"duplicate", "unmet", "breaks quietly", "fails at commit", "stuck", "contended", "down", "unknown type",
	"always contended", "always down"}

// always is a number of times that no run reaches.
const always = 1 << 20

// outside reports whether the store knows that what the message met is not its
// own doing: a lock that another holds, a full disk. It passes.
func (m *message) outside() bool {
	return m.number%2 == 0 && (m.conduct == meetsContention || m.conduct == meetsDown)
}

// message is what a producer said; copies share it.
type message struct {
	number int
	// id is what the store knows it by: of the source and the identity.
	id               string
	source, identity string
	// former is its former identity, which others may have had, too; empty: it has none.
	former  string
	print   semel.Fingerprint
	conduct conduct
	// times is how often it still behaves so before it succeeds.
	times int
	// failed is how often its handler failed.
	failed int
	// intent is what a sender sends, of the message, or step of it, that caused it.
	intent *semel.Message
	of     *message
	ofStep string
	// chosenKey is the idempotency key that it was given, if it was.
	chosenKey string
	// clashed: its intents were there with another content.
	clashed bool
	// from is how many of its steps are done before it behaves so.
	from int
	// harmless: the message can be blamed for nothing but what looks like
	// others' or the store's fault again and again.
	harmless bool
	// charged is how often it was, in one life.
	charged int
	// doubted: what became of a call for it was not known.
	doubted bool
	// edited is what it was before a person has edited it; nil: nobody has.
	edited  *message
	refused semel.Reason
	// foreign: it is refused because it is not the consumer's.
	foreign bool
	route   uint64
	size    int
	// stream and version are its place in a stream; 0: it has none. late: it comes when
	// everything else of its lane has come.
	stream  string
	version int64
	late    bool
	// age is when its identity was published first, where what has ended is removed.
	age time.Duration
}

// delivery is a place in a lane's log.
type delivery struct {
	message  *message
	lane     *lane
	position int
	produced time.Duration
	// due is when it can be delivered again after it was handed back.
	due     time.Duration
	settled bool
	// acknowledged: who has the lane has settled it: the checker's.
	acknowledged bool
	out          bool // handed out in this epoch
	returned     bool // handed back in this epoch
	count        int  // how often it was handed out
	// of is the place that a replay reads again; nil: none.
	of *delivery
}

// name is what histories call the message.
func (m *message) name() string {
	if m.version > 0 {
		return "m" + strconv.Itoa(m.number) + "=" + m.stream + strconv.FormatInt(m.version, 10)
	}
	return "m" + strconv.Itoa(m.number)
}

func (w *world) drawMessages() {
	c, p := w.choices, &w.plan
	for i := range p.messages {
		m := w.drawMessage(i)
		w.publish(m)
		for copies := 0; p.has[troubleCopies] && copies < 3 && c.chance(3); copies++ {
			w.publish(m)
		}
		if p.has[troubleCopies] && c.chance(60) {
			for range c.between(8, 40) {
				w.publish(m)
			}
		}
		if p.has[troubleContent] && m.refused == "" && c.chance(6) {
			w.publish(w.otherContent(m))
		}
		w.drawTwins(m)
	}
	w.drawVersions()
	w.shuffleLanes()
	w.drawAges()
}

func (w *world) drawMessage(i int) *message {
	c, p := w.choices, &w.plan
	m := &message{number: len(w.messages), route: uint64(c.below(64)), size: c.between(1, 400)}
	// Every identity is used by two sources, for two messages.
	m.source, m.identity = []string{"s", "t"}[i%2], "id"+strconv.Itoa(i/2)
	if p.prints {
		m.print = semel.Fingerprint{Version: 1, Sum: [16]byte{byte(m.number), byte(m.number >> 8), 1}}
	}
	if p.has[troubleHandler] && c.chance(3) {
		m.conduct = conduct(c.below(len(conductNames)))
		m.times = m.conduct.drawTimes(c)
	}
	if m.times == always && m.looksInnocent() && p.config.OneAttempt && !p.queue {
		m.times = c.between(1, 8) // nobody counts its deliveries
	}
	if !p.has[troubleStuck] && m.conduct == sticks {
		m.conduct = failsRetryable
	}
	if p.calls {
		m.callsOut()
	}
	switch {
	case c.chance(25):
		m.refused, m.source, m.identity = "malformed", "surrogate", strconv.Itoa(i)
	case p.shared && c.chance(5):
		w.makeForeign(m, i)
	}
	m.id = m.source + "/" + m.identity
	w.drawFormer(m, i)
	w.drawStep(m)
	m.harmless = m.conduct == succeeds || m.conduct == meetsContention || m.conduct == meetsDown
	w.messages = append(w.messages, m)
	return m
}

// looksInnocent reports whether its failures are nobody's, as far as one of
// them shows.
func (m *message) looksInnocent() bool {
	return m.harmless || m.conduct == alwaysContends || m.conduct == alwaysDown
}

func (k conduct) drawTimes(c *choices) int {
	switch k {
	case succeeds:
		return 0
	case failsForGood, asksPark, asksDiscard, saysDuplicate, unknownType, alwaysContends, alwaysDown:
		return always
	case sticks, meetsContention, meetsDown:
		return c.between(1, 2)
	default:
		return c.between(1, 8)
	}
}

// otherContent returns a message of the same identity that says something else.
func (w *world) otherContent(m *message) *message {
	o := *m
	o.number = len(w.messages)
	if o.print.Version != 0 {
		o.print.Sum[2] = byte(2 + w.choices.below(2))
	}
	// It may differ in what its former identity was; not where followers wait, since the
	// first of an identity could be a conflict then, and the next stand in its place.
	if o.former != "" && !w.plan.config.Block && w.choices.flip() {
		o.former = "former/" + strconv.Itoa(w.choices.below(1+len(w.messages)/3))
	}
	w.messages = append(w.messages, &o)
	return &o
}

// publish appends a message to a lane's log.
func (w *world) publish(m *message) {
	l := w.source.lanes[w.choices.below(len(w.source.lanes))]
	l.log = append(l.log, &delivery{message: m, lane: l})
}

// shuffleLanes moves copies away from their first, and gives each place its
// time.
func (w *world) shuffleLanes() {
	c, p := w.choices, &w.plan
	for _, l := range w.source.lanes {
		for i := range l.log {
			if j := i - c.below(8); j >= 0 && c.chance(3) {
				l.log[i], l.log[j] = l.log[j], l.log[i]
			}
		}
		l.log = lastOfAll(l.log)
		at := time.Duration(0)
		for i, d := range l.log {
			if d.message.late {
				at += c.wait(p.config.Gap)
			}
			d.position, d.produced = i, at
			at += p.span / time.Duration(1+len(l.log)) * time.Duration(c.below(5)) / 2
		}
	}
}
