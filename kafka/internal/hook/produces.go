package hook

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Produces counts the requests to write records that were begun to be sent, so that
// somebody who waits in vain knows whether nothing was sent, or nobody knows what came
// of it. A request counts from before its first byte.
type Produces struct{ begun atomic.Uint64 }

// Begun is how many there were.
func (p *Produces) Begun() uint64 { return p.begun.Load() }

// Dialer connects to a broker.
type Dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Dial is a dialer whose connections are counted. Encryption is within what is counted:
// where config is nil there is none.
func (p *Produces) Dial(dial Dialer, config *tls.Config) Dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if config != nil {
			if conn, err = encrypted(ctx, conn, config, address); err != nil {
				return nil, err
			}
		}
		return counted{conn, p}, nil
	}
}

// encrypted speaks TLS over a connection, which it closes where that fails.
func encrypted(ctx context.Context, plain net.Conn, config *tls.Config, address string) (net.Conn, error) {
	config = config.Clone()
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			_ = plain.Close()
			return nil, err
		}
		config.ServerName = host
	}
	conn := tls.Client(plain, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = plain.Close()
		return nil, err
	}
	return conn, nil
}

// counted is a connection on which requests are counted. The client writes a request
// with one call, which begins with its length and its kind.
type counted struct {
	net.Conn
	produces *Produces
}

func (c counted) Write(b []byte) (int, error) {
	const length, kind = 4, 2
	if len(b) >= length+kind && binary.BigEndian.Uint16(b[length:]) == uint16(kmsg.Produce) {
		c.produces.begun.Add(1)
	}
	return c.Conn.Write(b)
}
