package policy

import (
	"errors"
	"path/filepath"
	"strings"
)

// sqlitePrefix starts the location of a SQLite database.
const sqlitePrefix = "sqlite:"

// IsPlace reports whether text is the location of a database, postgres://… or sqlite:FILE, instead of the name of a
// store.
func IsPlace(text string) bool {
	return strings.HasPrefix(text, sqlitePrefix) || strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// bareStore names the store of a policy without a file.
const bareStore = "store"

// Bare returns a policy that has only a store. Commands use a policy of Bare if the user gives the location
// of a database instead of a policy file. The parameter place is a PostgreSQL connection string or
// sqlite:FILE. Semel's tables have their default names. Errors do not contain the connection string.
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

// AddReader adds a consumer and the consumer's Kafka source to a policy without a file.
func (p *Policy) AddReader(name string, k *Kafka) {
	p.Sources = append(p.Sources, &Source{Name: "source", Kafka: k})
	p.Consumers = append(p.Consumers, &Consumer{Name: name, From: "source", Store: bareStore})
}
