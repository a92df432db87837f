package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/semel-go/semel/kafka/internal/hook"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// silence is how long no broker may have answered for the source to count as
// one that can be read: longer than a heartbeat takes, which is all that is
// asked while every lane is paused.
const silence = heartbeat + 2*time.Second

// brokers is the client by which a source asks and commits; it is no member of the
// group. It knows what brokers answered, and nothing of lanes and topics.
type brokers struct {
	config     *Config
	dial       dialer // of tests: another network
	lastDial   hook.LastDial
	warnings   hook.Warnings
	unanswered hook.UnansweredCommits
	lastAnswer hook.LastAnswer

	mu     sync.Mutex  // guards the rest; under it no other lock is taken
	asking *kgo.Client // nil before the first join
	closed bool
}

// open makes the client, if there is none, and then calls begun. It reports
// whether there is one: a source that was closed gets none.
func (b *brokers) open(begun func()) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.asking != nil {
		return !b.closed, nil
	}
	client, err := kgo.NewClient(b.options()...)
	if err != nil {
		return false, fmt.Errorf("kafka: %w", err)
	}
	b.asking = client
	begun()
	return true, nil
}

func (b *brokers) client() *kgo.Client {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asking
}

// shut lets no client be made any more. It reports whether there is one.
func (b *brokers) shut() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return b.asking != nil
}

// close ends the client.
func (b *brokers) close() {
	if client := b.client(); client != nil {
		client.Close()
	}
}

// dialer connects to a broker.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// common are the options of every connection.
func (b *brokers) common() []kgo.Opt {
	c := b.config
	options := append(slices.Clone(c.Options),
		kgo.SeedBrokers(c.Brokers...), kgo.ClientID(c.ClientID), kgo.WithLogger(hook.Logger{To: c.Logger, Warnings: &b.warnings}),
		kgo.MetadataMaxAge(metadataAge), kgo.MetadataMinAge(metadataWait), kgo.SASL(c.SASL...), kgo.DisableClientMetrics())
	if b.dial != nil {
		options = append(options, kgo.Dialer(b.dial))
	}
	if c.TLS != nil {
		options = append(options, kgo.DialTLSConfig(c.TLS.Clone()))
	}
	return options
}

// options are of the client that asks and commits.
func (b *brokers) options() []kgo.Opt {
	return append(b.common(), kgo.WithHooks(&b.lastDial, &b.unanswered, &b.lastAnswer), kgo.MaxDecompressBatchBytes(b.config.MaxBatch))
}

// unreachable says why nobody answers.
func (b *brokers) unreachable(err error) error {
	var answer *kerr.Error
	if errors.As(errors.Join(err, b.lastDial.Err()), &answer) {
		return explain(answer, "", b.config.Group)
	}
	return fmt.Errorf("kafka: none of the brokers %v can be reached; see that they run, that the addresses are right, and that TLS and SASL are set as their listener wants them: %w", b.config.Brokers, connectionError{b.lastDial.Err(), err})
}

// connectionError is why no broker could be asked. Its text is the one cause;
// errors.Is finds all that is known.
type connectionError struct{ dialed, asked error }

func (e connectionError) Error() string {
	var cause *net.OpError
	if errors.As(errors.Join(e.dialed, e.asked), &cause) {
		return cause.Error()
	}
	return cmp.Or(e.dialed, e.asked).Error()
}

func (e connectionError) Unwrap() []error { return []error{e.dialed, e.asked} }
