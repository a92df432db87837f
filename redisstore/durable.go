package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"github.com/semel-go/semel/store"
)

// Durable implements store.KeyStore: as New has read it, of a cluster's nodes the
// worst.
func (s *Store) Durable() (d store.Durability, why string) { return s.durable, s.why }

// read reads how durable the server is, or takes what is declared where it does not tell.
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
	if s.durable == store.DurabilityUnknown && o.Declared != 0 {
		s.durable, s.why = o.Declared, "declared: "+o.Because
	}
	return nil
}

// settings are those that decide whether keys last; empty: not known.
type settings map[string]string

// settingsOf reads them: from CONFIG, and from INFO, which managed services still answer.
func settingsOf(ctx context.Context, node rueidis.Client) (settings, error) {
	known := settings{}
	for _, section := range []string{"memory", "persistence", "replication", "cluster"} {
		text, err := node.Do(ctx, node.B().Info().Section(section).Build()).ToString()
		if err != nil {
			if _, refused := rueidis.IsRedisErr(err); refused {
				continue
			}
			return nil, failed("read settings", err)
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
		return nil, failed("read settings", err)
	}
	known["appendfsync"] = config["appendfsync"]
	return known, nil
}

// judge says how durable a server with such settings is, and by which of them.
func (s settings) judge() (d store.Durability, why string) {
	switch {
	case s["maxmemory_policy"] == "" || s["aof_enabled"] == "":
		return store.DurabilityUnknown, "the server does not tell maxmemory-policy and appendonly"
	case s["maxmemory_policy"] != "noeviction" && s["maxmemory"] != "0":
		return store.Volatile, fmt.Sprintf("maxmemory-policy %s: keys go when memory is short", s["maxmemory_policy"])
	case s["aof_enabled"] != "1":
		return store.Volatile, "appendonly no: a restart forgets what no snapshot has"
	case s["appendfsync"] == "":
		return store.DurabilityUnknown, "the server does not tell appendfsync"
	case s["appendfsync"] == "no":
		return store.Volatile, "appendfsync no: the operating system writes when it likes"
	case s["appendfsync"] != "always":
		return store.DurableExceptSeconds, "appendfsync " + s["appendfsync"]
	case s["connected_slaves"] != "0" || s["cluster_enabled"] == "1":
		return store.DurableExceptSeconds, "appendfsync always; a replica that is promoted lacks what had not reached it"
	}
	return store.Durable, "appendfsync always, noeviction"
}
