package bench

import (
	"fmt"
	"strings"

	"github.com/semel-go/semel/internal/bodies"
)

// Body is what messages carry beside the payment. The zero Body is nothing.
type Body struct {
	name  string
	size  int
	hooks *bodies.Set
}

// shell is what stands around what is carried, and about as long as it is, at
// most.
const (
	shell    = `{"account":%d,"amount":%d,"event":%s}`
	shellMax = len(`{"account":9999,"amount":1000,"event":}`)
	smallest = shellMax + bodies.Least
)

// SizedBody is made-up bodies of a length such as 200, 200B, 10KB or 1KiB.
func SizedBody(text string) (Body, error) {
	size, err := bodies.ParseSize(text)
	if err == nil && size < smallest {
		err = fmt.Errorf("a body of %q is too short for what a message carries; the least is %dB", text, smallest)
	}
	return Body{name: text, size: size}, err
}

// SizedBodies are made-up bodies of several lengths, between commas; none of an
// empty text.
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

// WebhookBody is the real webhooks in turn, of the file that
// scripts/fetch-webhooks prints.
func WebhookBody(file string) (Body, error) {
	all, err := bodies.Webhooks(file)
	return Body{name: "webhooks", hooks: &bodies.Set{Name: "webhooks", All: all}}, err
}

// String is the name of the bodies as it was given.
func (b Body) String() string {
	if b.name == "" {
		return fmt.Sprintf("%dB", b.Mean())
	}
	return b.name
}

// MarshalText is the name.
func (b Body) MarshalText() ([]byte, error) { return []byte(b.name), nil }

// UnmarshalText reads a name, for reports; such a Body makes no messages.
func (b *Body) UnmarshalText(text []byte) error { b.name = string(text); return nil }

// Mean is about how many bytes a body has.
func (b Body) Mean() int64 {
	switch {
	case b.size > 0:
		return int64(b.size)
	case b.hooks != nil:
		return b.hooks.Mean() + int64(shellMax)
	}
	return int64(len(`{"account":9999,"amount":100}`))
}

// of is the body of message n.
func (b Body) of(n uint64, account, amount int64) []byte {
	switch {
	case b.hooks != nil:
		return fmt.Appendf(nil, shell, account, amount, b.hooks.All[n%uint64(len(b.hooks.All))])
	case b.size > 0:
		around := len(fmt.Sprintf(shell, account, amount, ""))
		return fmt.Appendf(nil, shell, account, amount, bodies.Sized(b.size-around))
	}
	return fmt.Appendf(nil, `{"account":%d,"amount":%d}`, account, amount)
}
