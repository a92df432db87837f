package redis_test

import (
	"testing"

	"github.com/redis/rueidis"

	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/redisstore"
	"github.com/semel-go/semel/storetest"
)

// client returns a client for the given options, which is closed at the end of the test.
func client(t testing.TB, o rueidis.ClientOption) rueidis.Client {
	t.Helper()
	o.DisableCache = true
	c, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newStore(t testing.TB, c rueidis.Client, o redisstore.Options) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// suite runs the conformance suite for leased keys. The test cases run on the same servers, each with key names of its
// own. The servers use real time.
func suite(t *testing.T, c rueidis.Client) {
	storetest.Keys(t, storetest.KeyHarness{Open: func(t testing.TB) storetest.KeyInstance {
		return storetest.KeyInstance{
			Store: newStore(t, c, redisstore.Options{Prefix: t.Name()}),
			Pass:  storetest.RealTime,
		}
	}})
}

func TestLeasedKeysInOneServer(t *testing.T) {
	t.Parallel()
	suite(t, client(t, rueidis.ClientOption{InitAddress: []string{services.StartRedis(t).Address()}}))
}

func TestLeasedKeysInACluster(t *testing.T) {
	t.Parallel()
	nodes := services.StartRedisCluster(t)
	suite(t, client(t, rueidis.ClientOption{InitAddress: []string{nodes[0].Address()}}))
}

func TestLeasedKeysBehindSentinel(t *testing.T) {
	t.Parallel()
	pair := services.StartRedisPair(t)
	suite(t, client(t, rueidis.ClientOption{InitAddress: []string{pair.Sentinels[0].Address()}, Sentinel: rueidis.SentinelOption{MasterSet: services.SentinelSet}}))
}
