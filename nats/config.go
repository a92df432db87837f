package nats

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// Config describes which consumer of which stream the source reads. New reports all faults of a Config at once.
type Config struct {
	// Servers are the URLs of the servers to contact first, such as nats://127.0.0.1:4222. Required.
	Servers []string
	// Stream is the name of the stream. Required.
	Stream string
	// Consumer is the name of a durable pull consumer with explicit ack. Required. The source does not create the
	// consumer, because the settings of the consumer decide which messages are delivered. Several processes may use one
	// consumer; they share its messages.
	Consumer string
	// Domain is the JetStream domain of the stream; default: the domain of the account.
	Domain string
	// Credentials is the path of a credentials file with a JWT and a seed, as nsc creates it; empty for none. A user
	// and password, or a token, can be part of the URL of a server.
	Credentials string
	// TLS, if set, is used for every connection.
	TLS *tls.Config
	// ClientName is the name of the connection that the server shows; default "semel".
	ClientName string
	// Options are further options of nats.go for the connection. The source replaces options that would break a
	// guarantee: it reconnects forever, keeps nothing in memory while it is disconnected, and has its own callbacks for
	// errors, lost connections and new connections.
	Options []nats.Option
	// Logger receives warnings about the connection and about messages that the stream has lost; default
	// slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Servers = slices.Clone(c.Servers)
	if c.ClientName == "" {
		c.ClientName = "semel"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c *Config) validate() error {
	var faults []error
	if len(c.Servers) == 0 {
		faults = append(faults, errors.New("Servers is empty; name at least one server, such as nats://127.0.0.1:4222"))
	}
	for i, server := range c.Servers {
		if u, err := url.Parse(server); err != nil || u.Host == "" {
			faults = append(faults, fmt.Errorf("Servers[%d] is no URL of a server; write it as nats://127.0.0.1:4222", i))
		}
	}
	for _, name := range []struct{ field, value, example string }{{"Stream", c.Stream, "ORDERS"}, {"Consumer", c.Consumer, "billing"}} {
		switch {
		case name.value == "":
			faults = append(faults, fmt.Errorf("%s is empty; name it, such as %s", name.field, name.example))
		case strings.ContainsAny(name.value, " \t\r\n.*>/\\"):
			faults = append(faults, fmt.Errorf("%s is %q; a name has no space, dot, star, > or slash", name.field, name.value))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	return nil
}

// servers returns the URLs of the servers without passwords.
func (c *Config) servers() string {
	shown := make([]string, len(c.Servers))
	for i, server := range c.Servers {
		shown[i] = "a server"
		if u, err := url.Parse(server); err == nil {
			shown[i] = u.Host
		}
	}
	return strings.Join(shown, ", ")
}

// pingEvery is the longest interval at which the client asks the server whether the connection still works.
const pingEvery = 20 * time.Second

// options returns the options of the connection. Those of the source come last, so that a user cannot change them.
func (c *Config) options(s *Source) []nats.Option {
	options := []nats.Option{nats.Name(c.ClientName)}
	if c.TLS != nil {
		options = append(options, nats.Secure(c.TLS))
	}
	if c.Credentials != "" {
		options = append(options, nats.UserCredentials(c.Credentials))
	}
	return append(append(options, c.Options...), func(o *nats.Options) error {
		// A settlement that the client keeps during an outage would be sent after the hold time of its delivery.
		o.ReconnectBufSize = -1
		o.AllowReconnect, o.MaxReconnect, o.RetryOnFailedConnect = true, -1, false
		o.PingInterval = min(o.PingInterval, pingEvery)
		o.ReconnectedCB = func(*nats.Conn) { s.doubt() }
		o.DisconnectedErrCB = func(_ *nats.Conn, err error) {
			c.Logger.Warn("nats: connection lost", "servers", c.servers(), "error", err)
			s.rouse()
		}
		o.AsyncErrorCB = func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.Logger.Warn("nats: the server reports an error", "servers", c.servers(), "error", err)
		}
		return nil
	})
}
