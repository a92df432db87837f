package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/semel-go/semel/keystore"
)

// Durable implements keystore.Store. Durable returns the durability that New determined. For a cluster, the result is
// the durability of the least durable node.
func (s *Store) Durable() (d keystore.Durability, why string) { return s.durable, s.why }

// read determines the durability of the server. If the server does not report its settings, read uses the
// declared durability.
func (s *Store) read(ctx context.Context, o Options) error {
	nodes := s.client.Nodes()
	names := make([]string, 0, len(nodes))
	for name := range nodes {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		settings, err := settingsOf(ctx, nodes[name])
		if err != nil {
			return err
		}
		d, why := settings.judge()
		if len(nodes) > 1 {
			why = name + ": " + why
		}
		if d > s.durable {
			s.durable, s.why = d, why
		}
	}
	if s.durable == keystore.DurabilityUnknown && o.Declared != 0 {
		s.durable, s.why = o.Declared, "declared: "+o.Because
	}
	return nil
}

// settings has the settings of the server on which the survival of keys depends. An empty value is unknown.
type settings map[string]string

// settingsOf reads the settings from CONFIG and from INFO. Managed services also answer INFO.
func settingsOf(ctx context.Context, node rueidis.Client) (settings, error) {
	known := settings{}
	for _, section := range []string{"memory", "persistence", "replication", "cluster"} {
		text, err := node.Do(ctx, node.B().Info().Section(section).Build()).ToString()
		if err != nil {
			if _, refused := rueidis.IsRedisErr(err); refused {
				continue
			}
			return nil, wrapError("read settings", err)
		}
		for line := range strings.Lines(text) {
			if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
				known[name] = value
			}
		}
	}
	config, err := node.Do(ctx, node.B().ConfigGet().Parameter("appendfsync").Build()).AsStrMap()
	if err != nil {
		if _, refused := rueidis.IsRedisErr(err); refused {
			return known, nil
		}
		return nil, wrapError("read settings", err)
	}
	known["appendfsync"] = config["appendfsync"]
	return known, nil
}

// judge returns the durability of a server with these settings. The result why names the setting on which the
// durability depends.
func (s settings) judge() (d keystore.Durability, why string) {
	switch {
	case s["maxmemory_policy"] == "" || s["aof_enabled"] == "":
		return keystore.DurabilityUnknown, "the server does not report maxmemory-policy and appendonly"
	case s["maxmemory_policy"] != "noeviction" && s["maxmemory"] != "0":
		return keystore.Volatile, fmt.Sprintf("maxmemory-policy %s: the server evicts keys when memory is short", s["maxmemory_policy"])
	case s["aof_enabled"] != "1":
		return keystore.Volatile, "appendonly no: a restart loses all changes since the last snapshot"
	case s["appendfsync"] == "":
		return keystore.DurabilityUnknown, "the server does not report appendfsync"
	case s["appendfsync"] == "no":
		return keystore.Volatile, "appendfsync no: the operating system decides when to write to disk"
	case s["appendfsync"] != "always":
		return keystore.DurableExceptSeconds, "appendfsync " + s["appendfsync"]
	case s["connected_slaves"] != "0" || s["cluster_enabled"] == "1":
		return keystore.DurableExceptSeconds, "appendfsync always; a failover loses changes that had not reached the promoted replica"
	}
	return keystore.Durable, "appendfsync always, noeviction"
}
