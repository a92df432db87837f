package assembly

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/cmd/semel/internal/httphandler"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
	"github.com/semel-go/semel/consumer"
	"github.com/semel-go/semel/redisstore"
	"github.com/semel-go/semel/source"
)

// keyStore is an opened store of leased keys.
type keyStore struct {
	client rueidis.Client
	keys   *redisstore.Store
}

// newKeyedConsumer creates a consumer that makes calls under leased keys in Redis. If Redis is unavailable at
// the start, the consumer waits for Redis during its run.
func (a *Assembly) newKeyedConsumer(ctx context.Context, c *policy.Consumer, s *policy.Store, src source.Source) (Consumer, error) {
	endpoint, err := a.endpoint(c)
	if err != nil {
		return nil, err
	}
	a.logWindow(c, "its message ends as retry.on_exhausted says") // Redis has no inbox in which messages can be parked
	return a.orWaiting(ctx, &waitingConsumer{name: c.Name, store: s.Name, logger: a.options.Logger, make: func(ctx context.Context) (Consumer, error) {
		return a.makeKeyed(ctx, c, s, src, endpoint)
	}})
}

// makeKeyed creates a consumer with leased keys. makeKeyed needs an available Redis store.
func (a *Assembly) makeKeyed(ctx context.Context, c *policy.Consumer, s *policy.Store, src source.Source, endpoint *httphandler.Handler) (Consumer, error) {
	store, err := a.openKeys(ctx, s)
	if err != nil {
		return nil, err
	}
	config := a.config(c, src)
	config.Strategy, config.AckOnReceipt = consumer.StrategyMarker, false
	config.Retention = consumer.RetentionPolicy{}
	made, err := consumer.NewKeyed(store.keys, keyPolicy(c, s), func(ctx context.Context, _ consumer.Call, m *semel.Message) error { return endpoint.Handle(ctx, m) }, config)
	if err != nil {
		return nil, fmt.Errorf("store %s: %w", s.Name, err)
	}
	return made, nil
}

// keyPolicy returns the consumer's settings for leased keys.
func keyPolicy(c *policy.Consumer, s *policy.Store) consumer.KeyPolicy {
	return consumer.KeyPolicy{Keep: c.Retention.Keep, Delay: c.Retention.Delay, AllowVolatile: s.Redis.AllowVolatile(), FailOpen: c.NaturalReason()}
}

// openKeys connects to a Redis store and reads the durability that the server is configured for. All
// consumers of the store share the connection.
func (a *Assembly) openKeys(ctx context.Context, s *policy.Store) (*keyStore, error) {
	a.keysMutex.Lock()
	defer a.keysMutex.Unlock()
	if opened := a.keyStores[s.Name]; opened != nil {
		return opened, nil
	}
	r, at := s.Redis, "stores."+s.Name+".redis"
	tls, err := security{a.policy, at}.tls(r.TLS)
	if err != nil {
		return nil, err
	}
	option := rueidis.ClientOption{
		InitAddress: r.Addresses, Username: r.User, Password: r.Password, TLSConfig: tls, ClientName: "semel", DisableCache: true,
		Sentinel: rueidis.SentinelOption{MasterSet: r.Sentinel, TLSConfig: tls},
	}
	client, err := rueidis.NewClient(option)
	if err != nil {
		return nil, fmt.Errorf("store %s: Redis at %v does not answer: %w; check that it runs, and check user, password and tls", s.Name, r.Addresses, err)
	}
	keys, err := redisstore.New(ctx, client, redisstore.Options{Prefix: r.Prefix, HashTag: r.HashTag, Declared: r.Persistence, Because: r.Because})
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("store %s: %w", s.Name, err)
	}
	if a.keyStores == nil {
		a.keyStores = map[string]*keyStore{}
	}
	a.keyStores[s.Name] = &keyStore{client, keys}
	return a.keyStores[s.Name], nil
}

// closeKeys closes the connections to the Redis stores.
func (a *Assembly) closeKeys() {
	a.keysMutex.Lock()
	defer a.keysMutex.Unlock()
	for _, s := range a.keyStores {
		s.client.Close()
	}
	a.keyStores = nil
}
