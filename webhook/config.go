package webhook

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/semel-go/semel/source"
)

// Config configures a Receiver. If a field has the zero value, its default is used.
type Config struct {
	// Name is the name of the lane and the topic of messages. Required.
	Name string
	// Scheme is the signature scheme of the provider. Required.
	Scheme Scheme
	// Secrets are the secrets with which the provider may sign; see NewVerifier. Required.
	Secrets []string
	// Tolerance is the maximum difference between the signed time and the current time, including clock skew
	// and network delay; default DefaultTolerance. If the scheme signs no time, leave Tolerance 0.
	Tolerance time.Duration
	// Unsigned names headers that are copied into messages although they are not signed.
	Unsigned Unsigned
	// MaxBody is the maximum size of a body in bytes; default 16 MiB. A request with a larger body gets 413.
	MaxBody int64
	// InHand limits the memory of the process: the number of messages that are not committed yet (default
	// 1000), and the bytes of their bodies together with the bodies that are being read (default 64 MiB).
	// Requests beyond a limit get 429.
	InHand source.Bound
	// Wait is how long a request waits for the commit; default 8 s, because GitHub waits 10 s. After Wait the request
	// gets 503. The message is usually committed later, so that the request is a duplicate when the provider sends it
	// again.
	Wait time.Duration
	// ReadWithin is the maximum time for reading a body; default 10 s. If the server has a shorter timeout,
	// the shorter timeout applies.
	ReadWithin time.Duration
	// Repeats is the time for which the provider may send an event again, automatically or on the command of a person;
	// default 30 days. The retention of consumers must be longer than Repeats.
	Repeats time.Duration
	// Observe, if not nil, is called with the outcome of each request, from the goroutine of the
	// request. Observe must not block.
	Observe func(Observation)
}

// Unsigned configures headers that are not signed.
type Unsigned struct {
	// Headers are the names of the headers.
	Headers []string
	// Because is the reason why forged values of these headers are acceptable: anybody who has seen a signed
	// body once can send the body again with other headers. Because is required if Headers is set.
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
		return c, errors.New("webhook: Name is empty; set it to the name of the lane and the topic of messages")
	case c.MaxBody < 0 || c.InHand.Messages < 0 || c.InHand.Bytes < 0 || c.Wait < 0 || c.ReadWithin < 0 || c.Repeats < 0:
		return c, errors.New("webhook: MaxBody, InHand, Wait, ReadWithin and Repeats must not be negative")
	case c.InHand.Bytes < c.MaxBody:
		return c, fmt.Errorf("webhook: InHand.Bytes (%d) is smaller than MaxBody (%d); raise it", c.InHand.Bytes, c.MaxBody)
	}
	return c, c.Unsigned.validate(c.Scheme)
}

// isHeaderName reports whether text is a valid name of a header.
func isHeaderName(text string) bool {
	return text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}

// Headers with credentials, which are never kept.
var neverKept = []string{"authorization", "cookie", "proxy-authorization"}

func (u Unsigned) validate(s Scheme) error {
	switch {
	case len(u.Headers) > 0 && strings.TrimSpace(u.Because) == "":
		return errors.New("webhook: Unsigned.Headers is set without a reason; set Unsigned.Because to the reason why forged values are acceptable")
	case len(u.Headers) == 0 && u.Because != "":
		return errors.New("webhook: Unsigned.Because is set without headers; set Unsigned.Headers")
	}
	for _, name := range u.Headers {
		if !isHeaderName(name) {
			return fmt.Errorf("webhook: %q is not a valid name of a header", name)
		}
		if s.Signs(name) {
			return fmt.Errorf("webhook: scheme %s signs the header %s; remove it from Unsigned.Headers", s.Name(), name)
		}
		for _, secret := range neverKept {
			if strings.EqualFold(name, secret) {
				return fmt.Errorf("webhook: the header %s is a credential and must not be stored; remove it", name)
			}
		}
	}
	return nil
}
