package hook

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"net"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Produces counts the write requests that the client began to send. If a call reaches its timeout, the count
// shows whether nothing was sent or whether the outcome is unknown. A request is counted before its first byte
// is sent.
type Produces struct{ begun atomic.Uint64 }

// Begun returns the number of write requests that were begun.
func (p *Produces) Begun() uint64 { return p.begun.Load() }

// Dialer connects to a broker.
type Dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Dial returns a dialer for connections that count write requests. If config is not nil, the connections use
// TLS, and requests are counted before they are encrypted.
func (p *Produces) Dial(dial Dialer, config *tls.Config) Dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if config != nil {
			if conn, err = startTLS(ctx, conn, config, address); err != nil {
				return nil, err
			}
		}
		return countedConn{conn, p}, nil
	}
}

// startTLS starts TLS on a connection, and closes the connection if TLS fails.
func startTLS(ctx context.Context, plain net.Conn, config *tls.Config, address string) (net.Conn, error) {
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

// countedConn is a connection that counts write requests. The client writes each request with one call; the data
// begins with the length and the kind of the request.
type countedConn struct {
	net.Conn
	produces *Produces
}

func (c countedConn) Write(b []byte) (int, error) {
	const length, kind = 4, 2
	if len(b) >= length+kind && binary.BigEndian.Uint16(b[length:]) == uint16(kmsg.Produce) {
		c.produces.begun.Add(1)
	}
	return c.Conn.Write(b)
}
