package redis_test

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/internal/calls"
	"github.com/semel-go/semel/itest/services"
	"github.com/semel-go/semel/keystore"
	"github.com/semel-go/semel/redisstore"
	"github.com/semel-go/semel/store"
	"github.com/semel-go/semel/storetest"
)

// newClient returns a client that is connected to a given server.
func newClient(t testing.TB, r *services.Redis) rueidis.Client {
	t.Helper()
	return client(t, rueidis.ClientOption{InitAddress: []string{r.Address()}, DisableRetry: true, ConnWriteTimeout: 5 * time.Second})
}

func claim(id string) keystore.Claim {
	return keystore.Claim{Key: semel.Key{Consumer: "billing", Source: "shop", ID: id}, Token: store.NewToken(), Lease: time.Minute, Keep: time.Hour}
}

// want claims a key and checks the state in the answer.
func want(t testing.TB, s *redisstore.Store, c keystore.Claim, state keystore.State) keystore.Answer {
	t.Helper()
	a, err := s.ClaimKey(t.Context(), c)
	if err != nil || a.State != state {
		t.Fatalf("a claim is %v, %v, want %v", a, err, state)
	}
	return a
}

func run(t testing.TB, c rueidis.Client, command ...string) {
	t.Helper()
	if err := c.Do(t.Context(), c.B().Arbitrary(command...).Build()).Error(); err != nil {
		t.Fatal(command, err)
	}
}

func TestJ4WhatAServerIsWorth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings []string
		hide     []string
		want     keystore.Durability
	}{
		"each write is on disk":              {[]string{"appendonly yes", "appendfsync always"}, nil, keystore.Durable},
		"each second":                        {[]string{"appendonly yes", "appendfsync everysec"}, nil, keystore.DurableExceptSeconds},
		"trap_118_no append-only file":       {nil, nil, keystore.Volatile},
		"trap_118_keys are evicted":          {[]string{"appendonly yes", "appendfsync always", "maxmemory 100mb", "maxmemory-policy allkeys-lru"}, nil, keystore.Volatile},
		"a service that hides its settings":  {[]string{"appendonly yes", "appendfsync always"}, []string{"-config"}, keystore.DurabilityUnknown},
		"one that hides, and has no file":    {nil, []string{"-config"}, keystore.Volatile},
		"no eviction, and a bound on memory": {[]string{"appendonly yes", "appendfsync always", "maxmemory 100mb"}, nil, keystore.Durable},
		"a service that hides all of it":     {[]string{"appendonly yes", "appendfsync always"}, []string{"-config", "-info"}, keystore.DurabilityUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := services.StartRedis(t, c.settings...)
			o := rueidis.ClientOption{InitAddress: []string{server.Address()}}
			if c.hide != nil {
				run(t, newClient(t, server), append([]string{"ACL", "SETUSER", "default"}, c.hide...)...)
			}
			s := newStore(t, client(t, o), redisstore.Options{})
			if d, why := s.Durable(); d != c.want || why == "" {
				t.Errorf("it is %v, %q, want %v", d, why, c.want)
			}
			s = newStore(t, client(t, o), redisstore.Options{Declared: keystore.Durable, Because: "the provider says so"})
			if d, _ := s.Durable(); c.want == keystore.DurabilityUnknown != (d == keystore.Durable) && c.want != keystore.Durable {
				t.Errorf("declared durable, it is %v, and tells %v", d, c.want)
			}
		})
	}
}

func TestJ4AClusterIsWorthWhatItsWorstNodeIs(t *testing.T) {
	t.Parallel()
	nodes := services.StartRedisCluster(t)
	c := client(t, rueidis.ClientOption{InitAddress: []string{nodes[0].Address()}})
	keeps := func(n *services.Redis, file string) {
		run(t, c.Nodes()[n.Address()], "CONFIG", "SET", "appendonly", file)
	}
	for _, n := range nodes {
		keeps(n, "yes")
	}
	if d, why := newStore(t, c, redisstore.Options{}).Durable(); d != keystore.DurableExceptSeconds {
		t.Errorf("where each keeps its file it is %v, %q", d, why)
	}
	for _, n := range nodes {
		keeps(n, "no")
		if d, why := newStore(t, c, redisstore.Options{}).Durable(); d != keystore.Volatile || !strings.Contains(why, n.Address()) {
			t.Errorf("where %s keeps none it is %v, %q", n.Address(), d, why)
		}
		keeps(n, "yes")
	}
}

func TestAStoreThatIsNamedWronglyIsRefused(t *testing.T) {
	t.Parallel()
	c := newClient(t, services.StartRedis(t))
	for want, o := range map[string]redisstore.Options{"braces": {Prefix: "a{b}"}, "without a reason": {Declared: keystore.Durable}} {
		if _, err := redisstore.New(t.Context(), c, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := redisstore.New(t.Context(), nil, redisstore.Options{}); err == nil {
		t.Error("no client is a client")
	}
}

func TestTrap120ScriptsThatAreForgottenAreSentAgain(t *testing.T) {
	t.Parallel()
	c := newClient(t, services.StartRedis(t))
	s := newStore(t, c, redisstore.Options{})
	a := claim("a")
	want(t, s, a, keystore.Claimed)
	run(t, c, "SCRIPT", "FLUSH")
	want(t, s, claim("a"), keystore.Held)
	run(t, c, "SCRIPT", "FLUSH")
	if err := s.EndKey(t.Context(), a.Key, a.Token, keystore.Ending{Event: keystore.Complete, Keep: time.Hour}); err != nil {
		t.Error(err)
	}
	run(t, c, "SCRIPT", "FLUSH")
	if err := s.ExtendKey(t.Context(), a.Key, a.Token, time.Minute); !errors.Is(err, store.ErrClaimLost) {
		t.Error(err)
	}
}

func TestLaw6AClockThatIsSetBackHoldsALeaseForOnceMoreItsLength(t *testing.T) {
	t.Parallel()
	c := newClient(t, services.StartRedis(t))
	s := newStore(t, c, redisstore.Options{Prefix: "clock"})
	a := claim("a")
	a.Lease = time.Second
	want(t, s, a, keystore.Claimed)
	// If a clock is set back by an hour, deadlines that were written before are an hour too late. The test writes a
	// deadline that is an hour too late into the value.
	value, err := c.Do(t.Context(), c.B().Get().Key("clock:billing:shop:a").Build()).AsBytes()
	if err != nil {
		t.Fatal(err)
	}
	const until = 10 // offset of the deadline in the value: the deadline follows the format, the event and the token
	binary.BigEndian.PutUint64(value[until:], binary.BigEndian.Uint64(value[until:])+uint64(time.Hour.Milliseconds()))
	run(t, c, "SET", "clock:billing:shop:a", string(value), "KEEPTTL")
	if b := want(t, s, claim("a"), keystore.Held); b.Left > a.Lease {
		t.Errorf("it is held for %v more, and was claimed for %v", b.Left, a.Lease)
	}
	storetest.RealTime(t, 2*a.Lease)
	if b := want(t, s, claim("a"), keystore.Claimed); !b.Unknown() {
		t.Error("the outcome of the first is taken for known")
	}
}

func TestAKeyThatWasClaimedFirstWhileTheClockWasAhead(t *testing.T) {
	t.Run("E3_trap_T113_was_claimed_longer_ago_than_any_window", func(t *testing.T) {
		c := newClient(t, services.StartRedis(t))
		s := newStore(t, c, redisstore.Options{Prefix: "first"})
		a := claim("a")
		a.Lease = time.Second
		want(t, s, a, keystore.Claimed)
		move := func(by time.Duration) {
			value, err := c.Do(t.Context(), c.B().Get().Key("first:billing:shop:a").Build()).AsBytes()
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []int{10, 26} { // offsets of the end of the lease and of the time of the first claim
				binary.BigEndian.PutUint64(value[at:], uint64(int64(binary.BigEndian.Uint64(value[at:]))+by.Milliseconds()))
			}
			run(t, c, "SET", "first:billing:shop:a", string(value), "KEEPTTL")
		}
		move(time.Hour)
		want(t, s, claim("a"), keystore.Held)
		for range 2 {
			storetest.RealTime(t, 2*a.Lease)
			again := claim("a")
			again.Lease = a.Lease
			if b := want(t, s, again, keystore.Claimed); !(calls.Rule{Window: 365 * 24 * time.Hour}).Forgotten(b.Since) {
				t.Errorf("the first call was made %v ago, want longer than any window", b.Since)
			}
		}
	})
}

func TestWhatAnotherProgramPutThereIsNotTouched(t *testing.T) {
	t.Parallel()
	c := newClient(t, services.StartRedis(t))
	s := newStore(t, c, redisstore.Options{})
	run(t, c, "SET", "semel:billing:shop:text", "somebody's")
	run(t, c, "HSET", "semel:billing:shop:hash", "a", "b")
	newer := "\x02" + strings.Repeat("of a newer release", 10)
	run(t, c, "SET", "semel:billing:shop:newer", newer)
	for _, id := range []string{"text", "hash", "newer"} {
		a := claim(id)
		_, err := s.ClaimKey(t.Context(), a)
		if err == nil || s.Classify(err) != store.ClassPermanent || !strings.Contains(err.Error(), "choose another Prefix") {
			t.Errorf("%s: %v", id, err)
		}
		if err := s.EndKey(t.Context(), a.Key, a.Token, keystore.Ending{Event: keystore.Forget, Keep: time.Hour}); err == nil {
			t.Errorf("%s is ended", id)
		}
	}
	for id, is := range map[string]string{"text": "somebody's", "newer": newer} {
		if got, err := c.Do(t.Context(), c.B().Get().Key("semel:billing:shop:"+id).Build()).ToString(); err != nil || got != is {
			t.Errorf("%s is %q, %v", id, got, err)
		}
	}
}

func TestLaw13AServerThatDoesNotServe(t *testing.T) {
	t.Parallel()
	server := services.StartRedis(t, "appendonly yes", "appendfsync always")
	c := newClient(t, server)
	s := newStore(t, c, redisstore.Options{})
	a := claim("a")
	want(t, s, a, keystore.Claimed)
	refused := func(code string) {
		t.Helper()
		_, err := s.ClaimKey(t.Context(), claim("b"))
		var e *redisstore.Error
		if !errors.As(err, &e) || e.Code != code || s.Classify(err) != store.ClassDown {
			t.Errorf("want %q: %v", code, err)
		}
	}
	run(t, c, "CONFIG", "SET", "maxmemory", "1")
	refused("OOM")
	run(t, c, "CONFIG", "SET", "maxmemory", "0")
	run(t, c, "REPLICAOF", "127.0.0.1", "1")
	refused("READONLY")
	run(t, c, "REPLICAOF", "NO", "ONE")
	server.Freeze()
	ctx, done := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer done()
	if _, err := s.ClaimKey(ctx, claim("b")); err == nil || s.Classify(err) != store.ClassDown {
		t.Errorf("a frozen server: %v", err)
	}
	server.Thaw()
	server.Kill()
	refused("")
	server.Start()
	waitUntil(t, func() bool { _, err := s.ClaimKey(t.Context(), claim("c")); return err == nil })
	want(t, s, claim("a"), keystore.Held) // with appendfsync always, Redis has lost no write
	if err := s.EndKey(t.Context(), a.Key, a.Token, keystore.Ending{Event: keystore.Complete, Keep: time.Hour, Result: []byte("r")}); err != nil {
		t.Error(err)
	}
}

// waitUntil waits until condition returns true, and fails the test after a minute.
func waitUntil(t testing.TB, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); storetest.RealTime(t, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not so after a minute")
		}
	}
}

func TestTrap118AFailOverBetweenTheStages(t *testing.T) {
	t.Parallel()
	pair := services.StartRedisPair(t, "appendonly yes", "appendfsync always")
	c := client(t, rueidis.ClientOption{InitAddress: []string{pair.Sentinels[0].Address(), pair.Sentinels[1].Address()}, Sentinel: rueidis.SentinelOption{MasterSet: services.SentinelSet}})
	s := newStore(t, c, redisstore.Options{})
	if d, why := s.Durable(); d != keystore.DurableExceptSeconds {
		t.Errorf("a pair is %v, %s", d, why)
	}
	done, claimed := claim("done"), claim("claimed")
	want(t, s, done, keystore.Claimed)
	if err := s.EndKey(t.Context(), done.Key, done.Token, keystore.Ending{Event: keystore.Complete, Keep: time.Hour}); err != nil {
		t.Fatal(err)
	}
	want(t, s, claimed, keystore.Claimed)
	if err := c.Do(t.Context(), c.B().Wait().Numreplicas(1).Timeout(5000).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	pair.Master.Kill()
	waitUntil(t, func() bool {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := s.ClaimKey(ctx, claim("new"))
		return err == nil
	})
	want(t, s, claim("done"), keystore.Completed) // the replica still has the keys that it received from the master
	want(t, s, claim("claimed"), keystore.Held)
	if err := s.EndKey(t.Context(), claimed.Key, claimed.Token, keystore.Ending{Event: keystore.Complete, Keep: time.Hour}); err != nil {
		t.Error(err)
	}
}
