package policy

import "github.com/semel-go/semel/store"

// Redis is a store of leased keys, without Semel's tables.
type Redis struct {
	// Addresses are of the server, of nodes of a cluster, or of the Sentinels, as host:port.
	Addresses []string
	// Sentinel is the name under which Sentinels know the master; empty: there are none.
	Sentinel string
	// User and Password are of the server; Sentinels are asked without.
	User, Password string
	// TLS is nil where connections are not encrypted.
	TLS *TLS
	// Prefix and HashTag are as in redisstore.Options.
	Prefix, HashTag string
	// Persistence is what is declared of the server where it does not tell, 0 if nothing
	// is; Because is why.
	Persistence store.Durability
	Because     string
}

// AllowVolatile says why it is bearable that the server forgets keys; empty if it is not.
func (r *Redis) AllowVolatile() string {
	if r.Persistence == store.Volatile {
		return r.Because
	}
	return ""
}

// Databases are the stores with Semel's tables.
func (p *Policy) Databases() (all []*Store) {
	for _, s := range p.Stores {
		if s.Redis == nil {
			all = append(all, s)
		}
	}
	return all
}

// HasTables reports whether the store of this name, or with no name any, has Semel's tables.
func (p *Policy) HasTables(store string) bool {
	for _, s := range p.Databases() {
		if store == "" || s.Name == store {
			return true
		}
	}
	return false
}
