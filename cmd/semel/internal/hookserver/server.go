// Package hookserver serves the webhooks of a policy: one server for each address, with
// limits against clients that are slow or many.
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

// Options say where and how a Server listens.
type Options struct {
	// Address is host:port.
	Address string
	// Cert and Key are PEM files; empty: plain HTTP.
	Cert, Key string
	// Connections is how many may be open.
	Connections int
	// Logger is told when the server fails, and when the files of its certificate cannot be
	// read.
	Logger *slog.Logger
}

// Server is a server of one address.
type Server struct {
	options  Options
	listener net.Listener
	server   *http.Server
	group    worker.Group

	mutex sync.RWMutex
	paths map[string]http.Handler // guarded by mutex
}

// What a client may take for its headers, for all of its request where no receiver sets a
// time for the body, and for standing idle.
const (
	headerWithin = 5 * time.Second
	readWithin   = 15 * time.Second
	idleWithin   = time.Minute
	mostHeader   = 32 << 10
	// mostStreams is how many requests may be under way on one connection of HTTP/2.
	mostStreams = 100
)

// Open takes the address, and answers from then on: with 404 until Handle names a path.
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
		return nil, fmt.Errorf("listen: %w: stop who has the address, or write another one; nothing was received", err)
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
		s.options.Logger.Error("webhooks are received no more", "address", s.options.Address, "error", err)
	}
}

// Address is where it listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Handle has a handler answer the requests of a path, in the place of the one before.
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
		w.Header().Set("Connection", "close") // strangers look for paths, and keep no connection of others
		http.NotFound(w, r)
		return
	}
	h.ServeHTTP(w, r)
}

// closeWithin is how long answers under way may take that Close waits for.
const closeWithin = time.Second

// Close ends what is under way and waits for it. Receivers are closed before, so that nobody
// waits for more than an answer to be sent.
func (s *Server) Close() {
	stop, cancel := within(closeWithin)
	defer cancel()
	_ = s.server.Shutdown(stop) // what is left is cut below
	_ = s.server.Close()
	s.group.Wait()
}
