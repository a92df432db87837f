package assembly

import (
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// plainHost is a remote host of the connection string to which the client may speak without
// TLS, as it does where sslmode is not set and the server offers none; empty if there is none.
func plainHost(c *pgconn.Config) string {
	if c.TLSConfig == nil && remote(c.Host) {
		return c.Host
	}
	for _, f := range c.Fallbacks {
		if f.TLSConfig == nil && remote(f.Host) {
			return f.Host
		}
	}
	return ""
}

func remote(host string) bool {
	ip := net.ParseIP(host)
	return host != "localhost" && !strings.HasPrefix(host, "/") && (ip == nil || !ip.IsLoopback())
}
