package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/assembly"
	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
	"github.com/semel-go/semel/cmd/semel/internal/metrics"
	"github.com/semel-go/semel/cmd/semel/internal/operate"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/cmd/semel/internal/tracing"
	"github.com/spf13/cobra"
)

// serve starts the HTTP server for metrics and health before any message is read. serve returns nil if the
// policy has no address.
func (e *execution) serve(a *assembly.Assembly, recorded *recorders, traced *tracing.Tracer) (*metrics.Server, error) {
	l := e.policy.Listen
	if l.Address == "" {
		return nil, nil
	}
	o := metrics.Options{Address: l.Address, Loopback: l.Loopback(), TokenFile: l.TokenFile, TLS: secure(l), RestartOnOutage: l.RestartOnOutage, Sources: map[string]string{}, Risks: map[string][]string{}, Logger: e.options.Logger, Record: recorded.writeAll}
	if traced != nil {
		o.Spans = traced.Spans
	}
	for _, c := range e.policy.Consumers {
		if e.options.Consumer != "" && e.options.Consumer != c.Name {
			continue
		}
		o.Consumers = append(o.Consumers, c.Name)
		o.Sources[c.Name] = a.SourceKind(c)
		for _, risk := range e.policy.Risks(c) {
			o.Risks[c.Name] = append(o.Risks[c.Name], risk.Name)
		}
	}
	served, err := metrics.Open(o, a.Sampled())
	if err != nil {
		return nil, err
	}
	a.Observe(served.Watch())
	e.options.Logger.Info("metrics and health are served", "address", served.Address())
	return served, nil
}

// warn logs the policy's warnings. If consumers have alerts although the run serves no metrics, warn logs
// the names of these consumers.
func warn(p *policy.Policy, o assembly.Options) {
	for _, w := range p.Warnings {
		o.Logger.Warn(w.String())
	}
	var names []string
	for _, c := range p.Consumers {
		if p.Unserved(c) && (o.Consumer == "" || o.Consumer == c.Name) {
			names = append(names, c.Name)
		}
	}
	if len(names) > 0 {
		o.Logger.Warn("the policy has alerts, but this run serves no metrics for them; add listen: 127.0.0.1:9464 to the policy, and load the rules that semel generate alerts prints", "consumers", names)
	}
}

// secure returns the files for HTTPS, or nil if the policy names none.
func secure(l policy.Listen) *metrics.TLS {
	if l.TLS == nil {
		return nil
	}
	return &metrics.TLS{Certificate: l.TLS.Certificate, Key: l.TLS.Key, Clients: l.TLS.Clients}
}

// asMetrics converts consumers to the type that the metrics server needs.
func asMetrics(consumers map[string]*assembly.Runner) map[string]metrics.Consumer {
	all := map[string]metrics.Consumer{}
	for name, c := range consumers {
		all[name] = c
	}
	return all
}

func healthCommand(c *command.CLI) *cobra.Command {
	var live bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Check whether a run is ready",
		Long: `Ask the run at the address of the policy key listen whether it is ready, or with
--live whether it is alive, for probes that execute a command.

Exit codes: 0 yes; 4 no; 1 nobody answers.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := listenAddress(c, timeout, "a run does not serve its health: add listen: 127.0.0.1:9464")
			if err != nil {
				return err
			}
			path, asked := metrics.PathReady, "ready"
			if live {
				path, asked = metrics.PathLive, "alive"
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			h, err := fetchHealth(ctx, l, path)
			if err != nil {
				return command.Failed(err)
			}
			return printHealth(c, h, asked)
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "ask for liveness instead of readiness")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Second, "how long to wait for the answer")
	return c.WithConfig(cmd)
}

func printHealth(c *command.CLI, h metrics.Health, asked string) error {
	if c.JSON {
		if err := c.WriteJSON(h); err != nil {
			return err
		}
	} else if err := writeHealth(c.Out, h); err != nil {
		return command.Failed(err)
	}
	if !h.OK {
		return command.Found(fmt.Errorf("the run is not %s; this says of its stores what to do: %s", asked, c.Suggest("top")))
	}
	return nil
}

func writeHealth(w io.Writer, h metrics.Health) error {
	if len(h.Consumers) == 0 {
		_, err := fmt.Fprintln(w, state(h.OK, h.Reason))
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(h.Consumers)) {
		of := h.Consumers[name]
		if _, err := fmt.Fprintf(w, "%s: %s\n", name, state(of.OK, operate.WithoutConsumer(name, of.Reason))); err != nil {
			return err
		}
	}
	return nil
}

func state(ok bool, reason string) string {
	text := "ok"
	if !ok {
		text = "not ok"
	}
	if reason != "" {
		text += ": " + reason
	}
	return text
}

// mostHealth is the maximum number of bytes that are read from a health response.
const mostHealth = 1 << 20

// fetchHealth returns the health that the process at the policy's address reports.
func fetchHealth(ctx context.Context, l policy.Listen, path string) (metrics.Health, error) {
	var h metrics.Health
	response, err := call(ctx, l, http.MethodGet, path)
	if err != nil {
		return h, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusServiceUnavailable {
		return h, fmt.Errorf("%s answers %s: it is no run of semel", l.Address, response.Status)
	}
	if l.TokenFile == "" && l.TLS != nil && l.TLS.Clients != "" {
		if h.OK = response.StatusCode == http.StatusOK; !h.OK {
			h.Reason = "the reason is shown by /readyz and /livez to clients with a certificate of listen.tls.clients"
		}
		return h, nil
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, mostHealth)).Decode(&h); err != nil {
		return h, fmt.Errorf("%s answers %s without reasons: it is no run of semel, or it has another token", l.Address, response.Status)
	}
	return h, nil
}

// listenAddress returns the policy's address for metrics and health. If the policy has no address, listenAddress
// returns an error that ends with the text consequence, which names the remedy as well. The parameter timeout must be
// positive.
func listenAddress(c *command.CLI, timeout time.Duration, consequence string) (l policy.Listen, err error) {
	if timeout <= 0 {
		return l, command.UsageError("--timeout %v: give a positive duration, as 1s", timeout)
	}
	p, err := c.Load()
	if err != nil {
		return l, err
	}
	if p.Listen.Address == "" {
		return l, command.Failed(fmt.Errorf("%s has no key listen, so that %s", c.Config, consequence))
	}
	return p.Listen, nil
}

// call sends a request to the process at the policy's address.
func call(ctx context.Context, l policy.Listen, method, path string) (*http.Response, error) {
	scheme, transport := "http", &http.Transport{DisableKeepAlives: true}
	if files := secure(l); files != nil {
		trusted, err := files.Trusted()
		if err != nil {
			return nil, err
		}
		scheme, transport.TLSClientConfig = "https", trusted
	}
	request, err := http.NewRequestWithContext(ctx, method, scheme+"://"+dialAddress(l.Address)+path, nil)
	if err != nil {
		return nil, err
	}
	if l.TokenFile != "" {
		token, err := metrics.Token(l.TokenFile)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		if sent := (*url.Error)(nil); errors.As(err, &sent) {
			err = sent.Err
		}
		return nil, fmt.Errorf("no run serves %s, or it does not answer in time: %w", l.Address, err)
	}
	return response, nil
}

// dialAddress returns the address to connect to. A process that listens on all interfaces is reached
// at the loopback address.
func dialAddress(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip, wrong := netip.ParseAddr(host); err == nil && wrong == nil && ip.IsUnspecified() {
		loopback := "127.0.0.1"
		if ip.Is6() {
			loopback = "::1"
		}
		return net.JoinHostPort(loopback, port)
	}
	return address
}

// trace starts to export spans to the policy's collector. trace returns nil if the policy names no
// collector.
func (e *execution) trace(ctx context.Context, a *assembly.Assembly) (*tracing.Tracer, error) {
	t := e.policy.Traces
	if t.OTLP == "" {
		return nil, nil
	}
	o := tracing.Options{Endpoint: t.Endpoint(), Ratio: t.Ratio, Sources: map[string]string{}, Logger: e.options.Logger}
	for _, c := range e.policy.Consumers {
		o.Sources[c.Name] = a.SourceKind(c)
	}
	traced, err := tracing.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	a.Observe(traced)
	e.options.Logger.Info("spans of sampled messages are sent", "endpoint", o.Endpoint)
	return traced, nil
}
