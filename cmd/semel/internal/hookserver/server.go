// Package hookserver serves the webhook sources of a policy. Each address has one server. Limits protect the
// server against slow clients and against many clients.
package hookserver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/semel-go/semel/internal/worker"
)

// Options configure the address and the limits of a Server.
type Options struct {
	// Address is host:port.
	Address string
	// Cert and Key are the certificate and private key, in PEM files; empty for plain HTTP.
	Cert, Key string
	// Connections is the maximum number of open connections.
	Connections int
	// Logger logs failures of the server and unreadable certificate files.
	Logger *slog.Logger
}

// Server is the HTTP server of one address.
type Server struct {
	options  Options
	listener net.Listener
	server   *http.Server
	group    worker.Group

	mutex sync.RWMutex
	paths map[string]http.Handler // guarded by mutex
}

// The timeouts for headers, for a complete request, and for idle connections. Receivers have a timeout of
// their own for the body.
const (
	headerWithin = 5 * time.Second
	readWithin   = 15 * time.Second
	idleWithin   = time.Minute
	mostHeader   = 32 << 10
	// mostStreams is the maximum number of concurrent requests on one HTTP/2 connection.
	mostStreams = 100
)

// Open listens on the address and serves requests immediately. Until Handle adds a path, requests to the path
// get status 404.
func Open(o Options) (*Server, error) {
	s := &Server{options: o, paths: map[string]http.Handler{}}
	var config *tls.Config
	if o.Cert != "" {
		files := &certificate{cert: o.Cert, key: o.Key, logger: o.Logger}
		if _, err := files.get(nil); err != nil {
			return nil, err
		}
		config = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: files.get, NextProtos: []string{"h2", "http/1.1"}}
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w: stop the process that uses the address, or configure another one; nothing was received", err)
	}
	places := newLimitedListener(listener, o.Connections)
	s.listener = places
	s.server = &http.Server{
		Handler: s, TLSConfig: config, ReadHeaderTimeout: headerWithin, ReadTimeout: readWithin, IdleTimeout: idleWithin, MaxHeaderBytes: mostHeader,
		ConnState: places.state,
		HTTP2:     &http.HTTP2Config{MaxConcurrentStreams: mostStreams},
		ErrorLog:  slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	s.group.Go(s.serve)
	return s, nil
}

func (s *Server) serve() {
	serve := s.server.Serve
	if s.server.TLSConfig != nil {
		serve = func(l net.Listener) error { return s.server.ServeTLS(l, "", "") }
	}
	if err := serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		s.options.Logger.Error("webhooks are no longer received", "address", s.options.Address, "error", err)
	}
}

// Address returns the address on which the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Handle sets the handler of a path. Handle replaces an earlier handler of the path.
func (s *Server) Handle(path string, h http.Handler) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.paths[path] = h
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mutex.RLock()
	h := s.paths[r.URL.Path]
	s.mutex.RUnlock()
	if h == nil {
		w.Header().Set("Connection", "close") // a client that probes for paths must not keep a connection
		http.NotFound(w, r)
		return
	}
	h.ServeHTTP(w, r)
}

// closeWithin is the maximum time that Close waits for responses in progress.
const closeWithin = time.Second

// Close stops the server and waits for requests in progress. The receivers are closed before the server, so
// only responses remain to be sent.
func (s *Server) Close() {
	stop, cancel := timeoutContext(closeWithin)
	defer cancel()
	_ = s.server.Shutdown(stop) // the function closes remaining connections below
	_ = s.server.Close()
	s.group.Wait()
}
