package policy

import (
	"errors"
	"path/filepath"
	"strings"
)

// sqlitePrefix begins the place of a database in a file.
const sqlitePrefix = "sqlite:"

// IsPlace reports whether text is the place of a database, and not the name of a
// store: postgres://… or sqlite:FILE.
func IsPlace(text string) bool {
	return strings.HasPrefix(text, sqlitePrefix) || strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// bareStore is the name of a store of which only the place is known.
const bareStore = "store"

// Bare is a policy with only a store, for operators of programs that have no policy
// file: its place is a connection string of PostgreSQL or sqlite:FILE, its tables
// have their usual names. An error says what is wrong with the place, and nothing
// of what stands in it.
func Bare(place string) (*Policy, error) {
	p := &Policy{Bare: true, File: "--store", Stores: []*Store{{Name: bareStore}}}
	if file, ok := strings.CutPrefix(place, sqlitePrefix); ok {
		if file == "" {
			return nil, errors.New("sqlite: names no file; write sqlite:FILE")
		}
		if reason, remedy := badDatabase(file); reason != "" {
			return nil, errors.New(sqlitePrefix + file + ": " + reason + "; " + remedy)
		}
		p.Stores[0].SQLite = &SQLite{Path: filepath.Clean(file), Prefix: usualPrefix}
		return p, nil
	}
	if reason, remedy := badURL(place); reason != "" {
		return nil, errors.New(reason + "; " + remedy)
	}
	p.Stores[0].Postgres = &Postgres{URL: place, Schema: usualSchema, Prefix: usualPrefix, Listen: place}
	return p, nil
}

// AddReader adds a consumer to a policy without a file, and the source of Kafka that it reads.
func (p *Policy) AddReader(name string, k *Kafka) {
	p.Sources = append(p.Sources, &Source{Name: "source", Kafka: k})
	p.Consumers = append(p.Consumers, &Consumer{Name: name, From: "source", Store: bareStore})
}
