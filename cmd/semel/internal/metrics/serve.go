package metrics

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"

	"github.com/semel-go/semel/internal/legible"
	"github.com/semel-go/semel/internal/worker"
)

// The paths that a Server handles.
const (
	PathMetrics = "/metrics"
	PathLive    = "/livez"
	PathReady   = "/readyz"
	// PathRecord writes flight recordings on a POST request.
	PathRecord = "/recording"
)

// Options configure a Server.
type Options struct {
	// Address is the address to listen on. Loopback reports that only this machine can reach Address.
	Address  string
	Loopback bool
	// TokenFile is the file with the token that clients need for metrics and for the reasons of failed
	// checks; empty if clients need no token.
	TokenFile string
	// TLS configures HTTPS; nil for HTTP.
	TLS *TLS
	// Consumers are the names of all consumers of the process.
	Consumers []string
	// Sources maps consumers to the kinds of their sources.
	Sources map[string]string
	// Risks maps consumers to the risks that the policy accepts.
	Risks map[string][]string
	// Spans returns the number of spans that the collector accepted and the number of dropped spans; nil
	// without traces.
	Spans func() (sent, dropped int64)
	// RestartOnOutage is the duration of a store outage after which the liveness check fails; 0 means never.
	RestartOnOutage time.Duration
	// Logger logs failures of the server.
	Logger *slog.Logger
	// Record writes the flight recordings and returns the names of the files. The parameter why is recorded as
	// the reason.
	Record func(why string) ([]string, error)
}

// Server serves the metrics and the health of the consumers of one process.
type Server struct {
	options  Options
	listener net.Listener
	server   *http.Server
	watch    *Watch
	registry *prometheus.Registry
	group    worker.Group
	stop     context.CancelFunc
	base     context.Context
	samplers []*Sampler

	opened time.Time

	mutex     sync.Mutex
	consumers map[string]Consumer // nil before the consumers start; guarded by mutex
}

// Open listens on the address and serves requests immediately. If the address is in use, Open fails before
// any message is read.
func Open(o Options, stores []Store) (*Server, error) {
	if o.TokenFile != "" {
		if _, err := Token(o.TokenFile); err != nil {
			return nil, err
		}
	}
	listener, err := o.listen()
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, listener: listener, watch: newWatch(o.Consumers), registry: prometheus.NewRegistry(), opened: time.Now()}
	for _, store := range stores {
		s.samplers = append(s.samplers, newSampler(store, o.Logger))
	}
	s.registry.MustRegister(newCollector(s.watch, s.running, s.samplers, o), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	s.server = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10, ConnState: newConnectionLimit(mostConnections).onState, ErrorLog: slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug)}
	s.base, s.stop = context.WithCancel(context.Background())
	s.group.Go(func() {
		if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			o.Logger.Error("the server of metrics and health has failed", "address", o.Address, "error", err)
		}
	})
	return s, nil
}

func (o Options) listen() (net.Listener, error) {
	var secure *tls.Config
	if o.TLS != nil {
		var err error
		if secure, err = o.TLS.config(); err != nil {
			return nil, err
		}
	}
	listener, err := net.Listen("tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w: stop the process that uses the address, or choose another address; no message was read", err)
	}
	if secure != nil {
		return tls.NewListener(listener, secure), nil
	}
	return listener, nil
}

// Watch returns the observer that all consumers must use.
func (s *Server) Watch() *Watch { return s.watch }

// Address returns the address on which the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Started sets the running consumers and starts to sample the stores.
func (s *Server) Started(consumers map[string]Consumer) {
	s.mutex.Lock()
	s.consumers = consumers
	s.mutex.Unlock()
	for _, sampler := range s.samplers {
		s.group.Go(func() { sampler.work(s.base) })
	}
}

// Close ends open requests and sampling, and waits until the requests and the sampling have ended.
func (s *Server) Close() {
	s.stop()
	_ = s.server.Close()
	s.group.Wait()
}

func (s *Server) running() map[string]Consumer {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.consumers
}

func (s *Server) handler() http.Handler {
	scrape := newResponseSharing(promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, Registry: s.registry, DisableCompression: true}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+PathMetrics, func(w http.ResponseWriter, r *http.Request) {
		if !s.hasAccess(r) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "metrics need the token of listen.token_file, as Authorization: Bearer …, or a certificate of listen.tls.clients", http.StatusUnauthorized)
			return
		}
		scrape.ServeHTTP(w, r)
	})
	mux.HandleFunc("POST "+PathRecord, s.record)
	mux.HandleFunc("GET "+PathLive, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, s.Live()) })
	mux.HandleFunc("GET "+PathReady, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, s.Ready()) })
	return mux
}

// Recorded is the response to a request for recordings.
type Recorded struct {
	Files []string `json:"files,omitempty"`
	Error string   `json:"error,omitempty"`
}

// record writes the recordings for a client with access. Requests from web pages of other sites are rejected.
// A page of another site could make a local browser send many requests, and the recordings would fill the
// disk.
func (s *Server) record(w http.ResponseWriter, r *http.Request) {
	if err := http.NewCrossOriginProtection().Check(r); err != nil {
		http.Error(w, "requests from pages of other sites are not allowed", http.StatusForbidden)
		return
	}
	if !s.hasAccess(r) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a recording needs the token of listen.token_file, as Authorization: Bearer …", http.StatusUnauthorized)
		return
	}
	files, err := s.options.Record("requested by semel consumers record")
	answer, status := Recorded{Files: files}, http.StatusOK
	if err != nil {
		answer.Error, status = err.Error(), http.StatusServiceUnavailable
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// Health is the health of the process.
type Health struct {
	OK        bool                      `json:"ok"`
	Reason    string                    `json:"reason,omitempty"`
	Consumers map[string]ConsumerHealth `json:"consumers,omitempty"`
}

// ConsumerHealth is the health of one consumer. Reason can be set although OK is true, for example if the
// consumer is paused.
type ConsumerHealth struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
	// LastError is the last error of the consumer, even if the consumer works again.
	LastError *LastError `json:"last_error,omitempty"`
}

// Ready reports whether every consumer is ready.
func (s *Server) Ready() Health {
	if s.running() == nil {
		return Health{Reason: "the consumers have not started: the store or the source has not answered yet"}
	}
	return s.health(Consumer.Ready)
}

// Live reports whether every consumer makes progress or is paused by an operator. While the process starts,
// Live returns true until the start has taken RestartOnOutage.
func (s *Server) Live() Health {
	most := s.options.RestartOnOutage
	if waits := time.Since(s.opened); s.running() == nil && most > 0 && waits >= most {
		return Health{Reason: fmt.Sprintf("the consumers have not started for %s: the store or the source has not answered (listen.restart_on_outage)", legible.Span(waits.Round(time.Second)))}
	}
	return s.health(func(c Consumer) (bool, string) { return checkAlive(c, most) })
}

// checkAlive returns the result of Consumer.Alive. If the store has been down for longer than the parameter most,
// checkAlive returns false. If the parameter most is 0, checkAlive ignores outages.
func checkAlive(c Consumer, most time.Duration) (bool, string) {
	ok, why := c.Alive()
	if !ok || most <= 0 {
		return ok, why
	}
	since, down := c.StoreDown()
	if lasts := time.Since(since); !since.IsZero() && lasts >= most {
		return false, fmt.Sprintf("%s, for %s (listen.restart_on_outage)", down, legible.Span(lasts.Round(time.Second)))
	}
	return true, why
}

func (s *Server) health(of func(Consumer) (bool, string)) Health {
	h := Health{OK: true}
	for name, c := range s.running() {
		ok, why := of(c)
		if h.OK = h.OK && ok; h.Consumers == nil {
			h.Consumers = map[string]ConsumerHealth{}
		}
		h.Consumers[name] = ConsumerHealth{ok, why, s.watch.lastOf(name)}
	}
	return h
}

// answer writes the HTTP status. Clients with access also get the reasons.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, h Health) {
	status := http.StatusOK
	if !h.OK {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Cache-Control", "no-store")
	if !s.hasAccess(r) {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(h)
}

// hasAccess reports whether a request may read metrics and reasons. Access needs the token or a client
// certificate. If neither a token nor client certificates are configured, access needs a connection from this
// machine whose Host header names this machine. The Host header is checked because a web page could make a
// local browser send requests with a foreign host name.
func (s *Server) hasAccess(r *http.Request) bool {
	if hasClientCertificate(r) {
		return true
	}
	if s.options.TokenFile == "" {
		asked := s.options.TLS != nil && s.options.TLS.Clients != ""
		return !asked && s.options.Loopback && isLocal(r.Host)
	}
	want, err := Token(s.options.TokenFile)
	given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return err == nil && bearer && subtle.ConstantTimeCompare([]byte(given), []byte(want)) == 1
}

func isLocal(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = strings.Trim(hostPort, "[]")
	}
	_, err = netip.ParseAddr(host)
	return err == nil || host == "localhost"
}

// leastToken is the minimum length of a token in bytes. A token with fewer bytes could be guessed.
const leastToken = 16

// Token reads the token from a file. Errors do not contain the token.
func Token(file string) (string, error) {
	text, err := shape.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("listen.token_file: %w; make it, as with: openssl rand -hex 32", err)
	}
	t := strings.TrimSpace(string(text))
	if len(t) < leastToken || strings.ContainsFunc(t, unicode.IsControl) { // an HTTP header cannot contain control characters
		return "", fmt.Errorf("listen.token_file: %s holds no token: write one of at least %d bytes on one line, without control characters, as openssl rand -hex 32 makes it", file, leastToken)
	}
	return t, nil
}
