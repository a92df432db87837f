package webhook

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/source"
)

// Config says what a Receiver receives. The zero value of a field is its default.
type Config struct {
	// Name is that of the lane, and the topic of messages. Required.
	Name string
	// Scheme is how the provider signs. Required.
	Scheme Scheme
	// Secrets are those it may have signed with; see NewVerifier. Required.
	Secrets []string
	// Tolerance is how far a signed time may be from now; default DefaultTolerance. Clocks
	// of both sides and the way between them must be within it. A scheme that signs no time
	// has none.
	Tolerance time.Duration
	// Unsigned names headers that messages have although nobody signed them.
	Unsigned Unsigned
	// MaxBody is the longest body in bytes; default 16 MiB. A longer one is answered with 413.
	MaxBody int64
	// InHand bounds what was received and has not been committed: so many messages, default
	// 1000, and so many bytes of bodies, those that are being read among them, default 64
	// MiB. What is beyond is answered with 429.
	InHand source.Bound
	// Wait is how long a request waits for the commit; default 8 s, as GitHub waits for 10.
	// After it the answer is 503. Its message stays in hand, and is most likely committed
	// later; the provider's repetition is a duplicate then.
	Wait time.Duration
	// ReadWithin is how long a body may take to arrive; default 10 s. It holds where the server
	// has no shorter time-out.
	ReadWithin time.Duration
	// Repeats is for how long the provider may send an event again, by itself or because a
	// person asks it to; default 30 days. What consumers remember must be kept longer.
	Repeats time.Duration
	// Observe, when set, is told what became of each request. It is called from the
	// request's goroutine and must not block.
	Observe func(Observation)
}

// Unsigned are headers of requests that nobody signed.
type Unsigned struct {
	// Headers are their names. Messages have those that a request has.
	Headers []string
	// Because says why it is bearable that somebody may have replaced them: whoever saw a
	// signed body once can send it again, with others. Required with Headers.
	Because string
}

// Defaults.
const (
	// DefaultMaxBody is the default of Config.MaxBody.
	DefaultMaxBody = 16 << 20
	// DefaultMessages is the default of Config.InHand.Messages.
	DefaultMessages = 1000
	// DefaultBytes is the default of Config.InHand.Bytes.
	DefaultBytes = 64 << 20
	// DefaultWait is the default of Config.Wait.
	DefaultWait = 8 * time.Second
	// DefaultReadWithin is the default of Config.ReadWithin.
	DefaultReadWithin = 10 * time.Second
	// DefaultRepeats is the default of Config.Repeats.
	DefaultRepeats = 30 * 24 * time.Hour
)

func (c Config) withDefaults() (Config, error) {
	if c.MaxBody == 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.InHand.Messages == 0 {
		c.InHand.Messages = DefaultMessages
	}
	if c.InHand.Bytes == 0 {
		c.InHand.Bytes = max(DefaultBytes, c.MaxBody)
	}
	if c.Wait == 0 {
		c.Wait = DefaultWait
	}
	if c.ReadWithin == 0 {
		c.ReadWithin = DefaultReadWithin
	}
	if c.Repeats == 0 {
		c.Repeats = DefaultRepeats
	}
	if c.Observe == nil {
		c.Observe = func(Observation) {}
	}
	switch {
	case c.Name == "":
		return c, errors.New("webhook: it has no name; set Name, which names its lane and its messages' topic")
	case c.MaxBody < 0 || c.InHand.Messages < 0 || c.InHand.Bytes < 0 || c.Wait < 0 || c.ReadWithin < 0 || c.Repeats < 0:
		return c, errors.New("webhook: MaxBody, InHand, Wait, ReadWithin and Repeats are not negative")
	case c.InHand.Bytes < c.MaxBody:
		return c, fmt.Errorf("webhook: InHand.Bytes, %d, has no room for one body of MaxBody, %d; raise it", c.InHand.Bytes, c.MaxBody)
	}
	return c, c.Unsigned.validate(c.Scheme)
}

// named reports whether a text can be the name of a header.
func named(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// neverKept are headers that are credentials of somebody.
var neverKept = []string{"authorization", "cookie", "proxy-authorization"}

func (u Unsigned) validate(s Scheme) error {
	switch {
	case len(u.Headers) > 0 && strings.TrimSpace(u.Because) == "":
		return errors.New("webhook: headers are taken that nobody signed, and no reason says why that is bearable; set Unsigned.Because")
	case len(u.Headers) == 0 && u.Because != "":
		return errors.New("webhook: there is a reason for headers that nobody signed, and none is named; set Unsigned.Headers")
	}
	for _, name := range u.Headers {
		if !named(name) {
			return fmt.Errorf("webhook: %q is no name of a header", name)
		}
		if s.Signs(name) {
			return fmt.Errorf("webhook: scheme %s signs the header %s; remove it from those that nobody signed", s.Name(), name)
		}
		for _, secret := range neverKept {
			if strings.EqualFold(name, secret) {
				return fmt.Errorf("webhook: the header %s is a credential, and messages are kept; remove it", name)
			}
		}
	}
	return nil
}
