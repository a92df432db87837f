package bench

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/bodies"
)

// Body is the content of messages in addition to the payment. The zero Body is empty.
type Body struct {
	name  string
	size  int
	hooks *bodies.Set
}

// The constant shell is the JSON text around the content, and shellMax is roughly the maximum length of that text.
const (
	shell    = `{"account":%d,"amount":%d,"event":%s}`
	shellMax = len(`{"account":9999,"amount":1000,"event":}`)
	smallest = shellMax + bodies.Least
)

// SizedBody returns generated bodies of a length such as 200, 200B, 10KB or 1KiB.
func SizedBody(text string) (Body, error) {
	size, err := bodies.ParseSize(text)
	if err == nil && size < smallest {
		err = fmt.Errorf("a body of %q is too short for what a message carries; the least is %dB", text, smallest)
	}
	return Body{name: text, size: size}, err
}

// SizedBodies returns generated bodies of several lengths, separated by commas. For an empty text, SizedBodies returns
// no bodies.
func SizedBodies(text string) (all []Body, err error) {
	for length := range strings.SplitSeq(text, ",") {
		if length = strings.TrimSpace(length); length == "" {
			continue
		}
		body, err := SizedBody(length)
		if err != nil {
			return nil, err
		}
		all = append(all, body)
	}
	return all, nil
}

// WebhookBody returns a Body that uses the real webhooks of a file one after the other. The script
// scripts/fetch-webhooks prints the path of such a file.
func WebhookBody(file string) (Body, error) {
	all, err := bodies.Webhooks(file)
	return Body{name: "webhooks", hooks: &bodies.Set{Name: "webhooks", All: all}}, err
}

// String returns the name of the bodies, as in the flag.
func (b Body) String() string {
	if b.name == "" {
		return fmt.Sprintf("%dB", b.Mean())
	}
	return b.name
}

// MarshalText returns the name of the bodies.
func (b Body) MarshalText() ([]byte, error) { return []byte(b.name), nil }

// UnmarshalText sets only the name of the bodies, which is enough to read a report. The result cannot
// generate messages.
func (b *Body) UnmarshalText(text []byte) error { b.name = string(text); return nil }

// Mean returns the approximate mean length of a body in bytes.
func (b Body) Mean() int64 {
	switch {
	case b.size > 0:
		return int64(b.size)
	case b.hooks != nil:
		return b.hooks.Mean() + int64(shellMax)
	}
	return int64(len(`{"account":9999,"amount":100}`))
}

// build returns the body of message number n.
func (b Body) build(n uint64, account, amount int64) []byte {
	switch {
	case b.hooks != nil:
		return fmt.Appendf(nil, shell, account, amount, b.hooks.All[n%uint64(len(b.hooks.All))])
	case b.size > 0:
		around := len(fmt.Sprintf(shell, account, amount, ""))
		return fmt.Appendf(nil, shell, account, amount, bodies.Sized(b.size-around))
	}
	return fmt.Appendf(nil, `{"account":%d,"amount":%d}`, account, amount)
}
