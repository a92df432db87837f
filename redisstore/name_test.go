package redisstore

import (
	"strings"
	"testing"

	"github.com/semel-go/semel"
	"github.com/semel-go/semel/keystore"
)

func TestNamesAreReadableAndUnique(t *testing.T) {
	s := &Store{prefix: "semel:{payments}"}
	for want, key := range map[string]semel.Key{
		"semel:{payments}:billing:shop:evt-1":             {Consumer: "billing", Source: "shop", ID: "evt-1"},
		"semel:{payments}:a%3ab::%7bx%7d%00":              {Consumer: "a:b", ID: "{x}\x00"},
		"semel:{payments}:a:%2525/b:%c3%a9":               {Consumer: "a", Source: "%25/b", ID: "é"},
		"semel:{payments}:a::" + strings.Repeat("x", 492): {Consumer: "a", ID: strings.Repeat("x", 492)},
	} {
		if got := s.name(key); got != want {
			t.Errorf("%q has the name %q, want %q", key, got, want)
		}
	}
	long := s.name(semel.Key{Consumer: "a", ID: strings.Repeat("x", 493)})
	if len(long) > 100 || !strings.HasPrefix(long, "semel:{payments}#") || long == s.name(semel.Key{Consumer: "a", ID: strings.Repeat("x", 494)}) {
		t.Errorf("the name of a long key is %q", long)
	}
}

func TestJ4DurabilityOfSettings(t *testing.T) {
	good := settings{"maxmemory_policy": "noeviction", "maxmemory": "0", "aof_enabled": "1", "appendfsync": "always", "connected_slaves": "0", "cluster_enabled": "0"}
	for name, c := range map[string]struct {
		set  settings
		want keystore.Durability
	}{
		"all is well":                      {nil, keystore.Durable},
		"evicts, but memory has no bound":  {settings{"maxmemory_policy": "allkeys-lru"}, keystore.Durable},
		"trap_118_evicts":                  {settings{"maxmemory_policy": "volatile-ttl", "maxmemory": "1000"}, keystore.Volatile},
		"trap_118_no_append_only_file":     {settings{"aof_enabled": "0"}, keystore.Volatile},
		"each second":                      {settings{"appendfsync": "everysec"}, keystore.DurableExceptSeconds},
		"when the system likes":            {settings{"appendfsync": "no"}, keystore.Volatile},
		"trap_118_a_replica_may_be_chosen": {settings{"connected_slaves": "1"}, keystore.DurableExceptSeconds},
		"trap_118_in_a_cluster":            {settings{"cluster_enabled": "1"}, keystore.DurableExceptSeconds},
		"appendfsync is hidden":            {settings{"appendfsync": ""}, keystore.DurabilityUnknown},
		"all is hidden":                    {settings{"aof_enabled": "", "maxmemory_policy": ""}, keystore.DurabilityUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			s := settings{}
			for _, from := range []settings{good, c.set} {
				for k, v := range from {
					s[k] = v
				}
			}
			if got, why := s.judge(); got != c.want || why == "" {
				t.Errorf("the durability is %v (%q), want %v", got, why, c.want)
			}
		})
	}
}
