package policy

import (
	"net"
	"net/netip"
	"strconv"
	"time"
)

// The table of where a run tells of itself.

// Listen says where `semel run` serves its metrics and its health.
type Listen struct {
	// Address is host:port; empty: nowhere.
	Address string
	// TokenFile holds the token that metrics and reasons ask for; empty: they ask for none.
	// Its path is resolved.
	TokenFile string
	// TLS is nil where nothing is encrypted.
	TLS *ListenTLS
	// RestartOnOutage is after how long an outage of a store fails liveness; 0: never.
	RestartOnOutage time.Duration
}

// ListenTLS says who a run is, and whose certificates give access. Paths are resolved.
type ListenTLS struct {
	// Certificate and Key are PEM files of this side, Clients one of authorities; empty: no
	// certificate gives access.
	Certificate, Key, Clients string
}

func listenShape() object[Listen] {
	return object[Listen]{
		fields: []field[Listen]{
			key(meta{name: "address", required: true, doc: "Host and port, as `127.0.0.1:9464` or `[::1]:9464`. Another host than loopback needs `token_file`, or `tls` with `clients`."},
				word{what: "host:port", check: badListen}, func(l *Listen) *string { return &l.Address }),
			key(meta{name: "token_file", doc: "A file with a token of at least 16 bytes on its only line, relative to the policy file and read at each request, so that it can be renewed. `/metrics` and the reasons of `/livez` and `/readyz` ask for it, as `Authorization: Bearer …`."},
				path{word: word{what: "a path"}}, func(l *Listen) *string { return &l.TokenFile }),
			key(meta{name: "tls", doc: "Serves https. Without it the token and the figures can be read on the way."}, pointer[ListenTLS]{listenTLSShape()}, func(l *Listen) **ListenTLS { return &l.TLS }),
			key(meta{name: "restart_on_outage", doc: "Have `/livez` fail when a store has not worked for so long, or not answered at the start, so that who watches the process starts it anew. A restart mends no database: without this key no outage fails it, and the consumers go on by themselves."},
				span{least: 10 * time.Second, most: day}, func(l *Listen) *time.Duration { return &l.RestartOnOutage }),
		},
		short: listenAddress{word{what: "host:port", check: badListen}},
	}
}

func listenTLSShape() object[ListenTLS] {
	file := path{word: word{what: "a path"}}
	return object[ListenTLS]{fields: []field[ListenTLS]{
		key(meta{name: "certificate", required: true, doc: "A PEM file with the certificate of this side, read anew for each connection, so that it can be renewed."}, file, func(t *ListenTLS) *string { return &t.Certificate }),
		key(meta{name: "key", required: true, doc: "A PEM file with its key."}, file, func(t *ListenTLS) *string { return &t.Key }),
		key(meta{name: "clients", doc: "A PEM file of authorities: who shows a certificate of theirs may read metrics and reasons, as who has the token may. Probes need none."}, file, func(t *ListenTLS) *string { return &t.Clients }),
	}}
}

// listenAddress is a Listen without a token.
type listenAddress struct{ word }

func (s listenAddress) read(d *decoder, p place) (Listen, bool) {
	address, ok := s.word.read(d, p)
	return Listen{Address: address}, ok
}

func badListen(s string) (reason, remedy string) {
	host, port, err := net.SplitHostPort(s)
	n, notNumber := strconv.ParseUint(port, 10, 16)
	switch {
	case err != nil || notNumber != nil || n == 0:
		return "this is no address to listen on", `write "host:port" with a port of 1 to 65535, as "127.0.0.1:9464"`
	case host == "":
		return "it names no host, and so means every interface of the machine", `name it, as "127.0.0.1:9464", or "0.0.0.0:9464" with a token_file`
	}
	return "", ""
}

// Loopback reports whether only this machine reaches the address.
func (l Listen) Loopback() bool {
	host, _, err := net.SplitHostPort(l.Address)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.Unmap().IsLoopback()
}

// checkListen refuses metrics that anybody could read.
func (p *Policy) checkListen(d *decoder) {
	l := p.Listen
	if l.Address == "" || l.TokenFile != "" || l.TLS != nil && l.TLS.Clients != "" || l.Loopback() || !d.sound("listen") {
		return
	}
	at := "listen"
	if d.given("listen.address") {
		at = "listen.address"
	}
	d.faultAt(at, "who reaches this address could read metrics and the reasons of failures, which name consumers and places",
		`listen on 127.0.0.1, or name a file with a token: listen: {address: "`+l.Address+`", token_file: FILE}, or authorities under tls.clients`)
}
