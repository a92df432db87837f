// Package hookserver serves the webhooks of a policy: one server for each address, with limits against
// slow clients and against many clients.
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

// Options configure the address and limits of a Server.
type Options struct {
	// Address is host:port.
	Address string
	// Cert and Key are PEM files; empty: plain HTTP.
	Cert, Key string
	// Connections limits the open connections.
	Connections int
	// Logger logs when the server fails, and when the certificate files cannot be read.
	Logger *slog.Logger
}

// Server is the server of one address.
type Server struct {
	options  Options
	listener net.Listener
	server   *http.Server
	group    worker.Group

	mutex sync.RWMutex
	paths map[string]http.Handler // guarded by mutex
}

// The limits for reading headers, for reading the complete request if no receiver limits the body, and
// for idle connections.
const (
	headerWithin = 5 * time.Second
	readWithin   = 15 * time.Second
	idleWithin   = time.Minute
	mostHeader   = 32 << 10
	// mostStreams limits the concurrent requests on one HTTP/2 connection.
	mostStreams = 100
)

// Open listens on the address and answers at once, with 404 until Handle adds a path.
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
	places := limit(listener, o.Connections)
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

// Handle sets the handler of a path and replaces a previous one.
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
		w.Header().Set("Connection", "close") // clients that probe for paths must not hold connections
		http.NotFound(w, r)
		return
	}
	h.ServeHTTP(w, r)
}

// closeWithin limits how long Close waits for responses in progress.
const closeWithin = time.Second

// Close ends requests in progress and waits for them. Receivers are closed before, so only sending of
// responses is left.
func (s *Server) Close() {
	stop, cancel := within(closeWithin)
	defer cancel()
	_ = s.server.Shutdown(stop) // remaining connections are cut below
	_ = s.server.Close()
	s.group.Wait()
}
