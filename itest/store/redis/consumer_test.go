package redis_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/file"
	"github.com/semel-go/semel/identity"
	"github.com/semel-go/semel/internal/eventkind"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/redisstore"
	"github.com/semel-go/semel/source"
)

// fixture counts the calls for each message, and records the consumer's events about the store of keys.
type fixture struct {
	mutex sync.Mutex
	calls map[string]int             // number of calls by message id; guarded by mutex
	keys  map[string]map[string]bool // idempotency keys by message id; guarded by mutex
	codes map[string]bool            // Redis error codes that the consumer reported; guarded by mutex
	waits map[string]bool            // ids of messages that waited for another process with the same message; guarded by mutex
	// first has, by message id, the functions that run during the first call for the message; second has those for
	// the second call.
	first, second map[string]func()
}

func newFixture() *fixture {
	return &fixture{calls: map[string]int{}, keys: map[string]map[string]bool{}, codes: map[string]bool{}, waits: map[string]bool{}}
}

func (s *fixture) call(_ context.Context, _ consumer.Call, m *semel.Message) error {
	id, do := m.Identity.ID, map[int]map[string]func(){1: s.first, 2: s.second}
	if do := do[s.countCall(id, m.IdempotencyKey("call"))][id]; do != nil {
		do()
	}
	return nil
}

// countCall counts a call, and returns the number of calls for the message so far.
func (s *fixture) countCall(id, key string) int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calls[id]++
	if s.keys[id] == nil {
		s.keys[id] = map[string]bool{}
	}
	s.keys[id][key] = true
	return s.calls[id]
}

// Observe implements semel.Observer.
func (s *fixture) Observe(e semel.Event) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var refused *redisstore.Error
	if errors.As(e.Err, &refused) {
		s.codes[refused.Code] = true
	}
	if e.Kind == eventkind.Busy {
		s.waits[e.Key.ID] = true
	}
}

// hasWaited reports whether a consumer has reported that the message waits for another process with the same
// message.
func (s *fixture) hasWaited(id string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.waits[id]
}

func (s *fixture) hasEvent(code string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.codes[code]
}

// want fails unless there was at least one call for each message, and at most as many calls as the parameter most says,
// all with the same idempotency key.
func (s *fixture) want(t *testing.T, messages, most int) {
	t.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var wrong []string
	for n := range messages {
		if id := fmt.Sprint("m", n); s.calls[id] < 1 || s.calls[id] > most || len(s.keys[id]) != 1 {
			wrong = append(wrong, fmt.Sprintf("%s %d times under %d keys", id, s.calls[id], len(s.keys[id])))
		}
	}
	if len(wrong) > 0 {
		t.Errorf("%d are called for wrongly: %v", len(wrong), wrong[:min(len(wrong), 20)])
	}
	if len(s.calls) != messages {
		t.Errorf("%d messages were called for, of %d", len(s.calls), messages)
	}
}

// newSource returns a source with the given number of messages, each message as often as the parameter copies
// says.
func newSource(messages, copies int) source.Source {
	var b strings.Builder
	for n := range messages * copies {
		fmt.Fprintf(&b, "{\"headers\":{\"id\":\"m%d\"},\"body\":{}}\n", n%messages)
	}
	return file.Stdin(strings.NewReader(b.String()), file.Options{Format: file.Envelope})
}

// policy returns the configuration that all consumers in this package use.
func policy(src source.Source) consumer.Config {
	return consumer.Config{
		Name: "billing", Source: src, Identity: identity.By("header:id"), Lanes: consumer.LanesNone, Workers: workers,
		OnConflict: consumer.ActionHalt, OnBadIdentity: consumer.ActionHalt, Retry: consumer.RetryPolicy{OnExhausted: consumer.ActionHalt},
	}
}

// The maximum number of concurrent calls of a consumer.
const workers = 8

// The default time for which a consumer holds a key.
const lease = 30 * time.Second

// The key policy of all consumers in this package.
var kept = consumer.KeyPolicy{Keep: 30 * 24 * time.Hour, AllowVolatile: "it is a test"}

// newConsumer returns a consumer that reads the source src and uses the given store of keys.
func (s *fixture) newConsumer(t *testing.T, keys keystore.Store, src source.Source, change func(*consumer.Config)) *consumer.Consumer[consumer.Call] {
	t.Helper()
	c := policy(src)
	c.Logger, c.Observers = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})), []semel.Observer{s}
	if change != nil {
		change(&c)
	}
	made, err := consumer.NewKeyed(keys, kept, s.call, c)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// runConsumers runs consumers at the same time until their sources end, and returns the sum of their counts.
func runConsumers(t *testing.T, all ...*consumer.Consumer[consumer.Call]) (sum semel.Counts) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var running sync.WaitGroup
	for _, c := range all {
		running.Go(func() {
			if err := c.Run(ctx); err != nil || ctx.Err() != nil {
				t.Errorf("%v, %v: %+v", err, ctx.Err(), c.Counts())
			}
		})
	}
	running.Wait()
	for _, c := range all {
		sum.Applied += c.Counts().Applied
		sum.Duplicates += c.Counts().Duplicates
	}
	return sum
}

func TestB11ConsumersOverEachKindOfServer(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) rueidis.ClientOption{
		"one server": func(t *testing.T) rueidis.ClientOption {
			return rueidis.ClientOption{InitAddress: []string{services.StartRedis(t).Address()}}
		},
		"a cluster": func(t *testing.T) rueidis.ClientOption {
			return rueidis.ClientOption{InitAddress: []string{services.StartRedisCluster(t)[0].Address()}}
		},
		"behind Sentinel": func(t *testing.T) rueidis.ClientOption {
			return sentinels(services.StartRedisPair(t))
		},
		"under TLS": func(t *testing.T) rueidis.ClientOption {
			address, roots := startTLSServer(t)
			return rueidis.ClientOption{InitAddress: []string{address}, TLSConfig: &tls.Config{RootCAs: roots}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const messages = 300
			s, keys := newFixture(), newStore(t, client(t, open(t)), redisstore.Options{})
			sum := runConsumers(t, s.newConsumer(t, keys, newSource(messages, 2), nil), s.newConsumer(t, keys, newSource(messages, 2), nil))
			if sum.Applied != messages || sum.Duplicates != 3*messages {
				t.Errorf("%+v", sum)
			}
			s.want(t, messages, 1)
		})
	}
}

func sentinels(p *services.RedisPair) rueidis.ClientOption {
	o := rueidis.ClientOption{Sentinel: rueidis.SentinelOption{MasterSet: services.SentinelSet}}
	for _, s := range p.Sentinels {
		o.InitAddress = append(o.InitAddress, s.Address())
	}
	return o
}

func TestTrap118AConsumerWhoseServerFailsOverBetweenClaimAndCompletion(t *testing.T) {
	t.Parallel()
	pair := services.StartRedisPair(t, "appendonly yes", "appendfsync always")
	c := client(t, sentinels(pair))
	s, keys := newFixture(), newStore(t, c, redisstore.Options{})
	s.first = map[string]func(){"m20": func() {
		if err := c.Do(t.Context(), c.B().Wait().Numreplicas(1).Timeout(5000).Build()).Error(); err != nil {
			t.Error(err)
		}
		pair.Master.Kill()
	}}
	const messages = 200
	sum := runConsumers(t, s.newConsumer(t, keys, newSource(messages, 2), nil))
	if sum.Applied+sum.Duplicates != 2*messages || sum.Applied < messages {
		t.Errorf("%+v", sum)
	}
	s.want(t, messages, 2) // one call was not replicated before the failover, so it is repeated with the same key
	if s.calls["m20"] != 1 {
		t.Errorf("the replica knew of the claim, and it was called for %d times", s.calls["m20"])
	}
}

func TestNothingIsLostWhatRedisRefuses(t *testing.T) {
	t.Parallel()
	// Each fault happens on a Redis server during a call, between claim and completion. The fault ends when
	// the consumer has reported the error.
	durable := []string{"appendonly yes", "appendfsync always"}
	for code, harm := range map[string]func(t *testing.T, s *fixture, r *services.Redis, c rueidis.Client){
		"NOSCRIPT": func(t *testing.T, _ *fixture, _ *services.Redis, c rueidis.Client) { run(t, c, "SCRIPT", "FLUSH") },
		"OOM": func(t *testing.T, s *fixture, _ *services.Redis, c rueidis.Client) {
			run(t, c, "CONFIG", "SET", "maxmemory", "1")
			waitUntil(t, func() bool { return s.hasEvent("OOM") })
			run(t, c, "CONFIG", "SET", "maxmemory", "0")
		},
		"READONLY": func(t *testing.T, s *fixture, _ *services.Redis, c rueidis.Client) {
			run(t, c, "REPLICAOF", "127.0.0.1", "1")
			// During the fault, the completions of all other workers are rejected. If the other workers waited until
			// their leases end, their calls would be repeated after half a minute.
			began := time.Now()
			waitUntil(t, func() bool { return s.hasEvent("READONLY") })
			if took := time.Since(began); took > lease/2 {
				t.Errorf("it was told after %v", took)
			}
			run(t, c, "REPLICAOF", "NO", "ONE")
		},
		"LOADING": func(t *testing.T, s *fixture, r *services.Redis, _ rueidis.Client) {
			// A completion (the record that a call has ended) reports its first error, and then one error a minute. The
			// completions of other workers may report the lost connection. The call of this test ends while the server
			// loads its data, so the call's completion reports LOADING.
			r.Kill()
			r.StartLoading()
		},
	} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			// Without the option DisableRetry, the client would retry until leases end, and calls would be repeated.
			settings := durable
			if code == "LOADING" { // loading the data takes two seconds
				settings = append(slices.Clone(durable), "key-load-delay 1000", "loading-process-events-interval-bytes 1024", "enable-debug-command yes")
			}
			server := services.StartRedis(t, settings...)
			s, keys := newFixture(), newStore(t, client(t, rueidis.ClientOption{InitAddress: []string{server.Address()}, DisableRetry: code == "LOADING" || code == "READONLY"}), redisstore.Options{})
			operator := client(t, rueidis.ClientOption{InitAddress: []string{server.Address()}})
			if code == "LOADING" {
				run(t, operator, "DEBUG", "POPULATE", "2000")
				run(t, operator, "BGREWRITEAOF")
				waitUntil(t, func() bool {
					text, err := operator.Do(t.Context(), operator.B().Info().Section("persistence").Build()).ToString()
					return err == nil && strings.Contains(text, "aof_rewrite_in_progress:0") && strings.Contains(text, "aof_rewrite_scheduled:0")
				})
			}
			s.first = map[string]func(){"m20": func() { harm(t, s, server, operator) }}
			const messages = 200
			if sum := runConsumers(t, s.newConsumer(t, keys, newSource(messages, 2), nil)); sum.Applied != messages || sum.Duplicates != messages {
				t.Errorf("%+v", sum)
			}
			s.want(t, messages, 1)
			// NOSCRIPT is not reported, because the store sends the script again.
			if code != "NOSCRIPT" && !s.hasEvent(code) {
				t.Errorf("the consumer reports %v, but not %s", s.codes, code)
			}
		})
	}
	t.Run("CLUSTERDOWN", func(t *testing.T) {
		t.Parallel()
		nodes := services.StartRedisCluster(t, durable...)
		s, keys := newFixture(), newStore(t, client(t, rueidis.ClientOption{InitAddress: []string{nodes[0].Address()}, DisableRetry: true}), redisstore.Options{})
		first := client(t, rueidis.ClientOption{InitAddress: []string{nodes[0].Address()}, ForceSingleClient: true})
		s.first = map[string]func(){"m20": func() {
			run(t, first, "CLUSTER", "DELSLOTSRANGE", "0", "5460")
			waitUntil(t, func() bool { return s.hasEvent("CLUSTERDOWN") })
			run(t, first, "CLUSTER", "ADDSLOTSRANGE", "0", "5460")
		}}
		const messages = 200
		if sum := runConsumers(t, s.newConsumer(t, keys, newSource(messages, 2), nil)); sum.Applied != messages || sum.Duplicates != messages {
			t.Errorf("%+v", sum)
		}
		s.want(t, messages, 1)
	})
}
