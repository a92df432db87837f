package policy

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/semel-go/semel/cmd/semel/internal/policy/shape"
	encrypt "github.com/semel-go/semel/encryption"
	"github.com/semel-go/semel/keystore"
)

// The default schema and prefix of Semel's tables.
const (
	usualSchema = "public"
	usualPrefix = "semel_"
)

func postgresShape() shape.Object[Postgres] {
	return shape.Object[Postgres]{OneOf: []string{"url", "url_file"}, Unsaid: "there is no connection string", Fields: []shape.Field[Postgres]{
		shape.Key(shape.Meta{Name: "url", Doc: "The connection string, such as `postgres://user:${PASSWORD}@host:5432/database?sslmode=verify-full`. A password must be an environment variable, and is never shown. Without `pool_max_conns`, a process opens at most one connection for each worker and two more."},
			connection{shape.Word{What: "a connection string, as postgres://user:${PASSWORD}@host:5432/database", Pattern: `^postgres(ql)?://\S+$`, Check: badURL}},
			func(p *Postgres) *string { return &p.URL }),
		shape.Key(shape.Meta{Name: "url_file", Doc: "Instead of `url`: a file whose only line is the connection string, which may contain the password. Read at the start."},
			shape.Path{Word: shape.Word{What: "a path"}}, func(p *Postgres) *string { return &p.URLFile }),
		shape.Key(shape.Meta{Name: "password_file", Doc: "A file whose only line is the password for `url` and `listen`. Read at the start, and for `url` again for each connection, so the password can be rotated."},
			shape.Path{Word: shape.Word{What: "a path"}}, func(p *Postgres) *string { return &p.PasswordFile }),
		shape.Key(shape.Meta{Name: "schema", Def: usualSchema, Doc: "The schema of Semel's tables. Semel's statements name it; your statements use the search_path."},
			shape.Word{What: "the name of a schema", Pattern: `^[^"'\\{}\x00-\x1f]{1,63}$`, Check: badSchema}, func(p *Postgres) *string { return &p.Schema }),
		shape.Key(shape.Meta{Name: "prefix", Def: usualPrefix, Doc: "The prefix of Semel's table names."},
			shape.Word{What: "a table prefix in lower case", Pattern: `^[a-z_][a-z0-9_]{0,31}$`, Check: badLowerPrefix}, func(p *Postgres) *string { return &p.Prefix }),
		shape.Key(shape.Meta{Name: "listen", Doc: "The connection string of an additional connection for notifications about due inbox rows. Without it, consumers poll every `inbox.poll`. It must connect to the server directly, not through a pooler. Processes that send notifications need it too: those that receive messages, and `semel messages retry`."},
			connection{shape.Word{What: "a connection string, as postgres://user:${PASSWORD}@host:5432/database", Pattern: `^postgres(ql)?://\S+$`, Check: badURL}},
			func(p *Postgres) *string { return &p.Listen }),
	}}
}

// connection describes a connection string whose password is an environment variable.
type connection struct{ shape.Word }

func (c connection) Read(d *shape.Decoder, p shape.Place) (string, bool) {
	if hasPassword(p.Value().Value) {
		d.Fault(p, "the policy contains a password in plain text", "write ${NAME} in its place, a variable of the environment, or take the whole connection string from one")
		return "", false
	}
	return c.Word.Read(d, p)
}

// passwords matches the passwords of a connection string: the password before the host, and the parameter
// password.
var passwords = regexp.MustCompile(`://[^:@/\s]*:([^@/\s]*)@|[?&]password=([^&\s}]+}?)`)

// hasPassword reports whether a text contains a password other than an environment variable.
func hasPassword(text string) bool {
	for _, found := range passwords.FindAllStringSubmatch(text, -1) {
		password := found[1] + found[2]
		if password != "" && (!strings.Contains(password, "${") || strings.Contains(password, ":-")) {
			return true
		}
	}
	return false
}

// badURL returns the reason why a connection string is invalid, and a remedy. The reason and the remedy do
// not quote the connection string, which may contain a password.
func badURL(s string) (reason, remedy string) {
	const form = "write postgres://user:${PASSWORD}@host:5432/database; in a password, write @ : / ? # % as %40 %3A %2F %3F %23 %25"
	u, err := url.Parse(s)
	switch {
	case err != nil || strings.ContainsAny(s, " \t"):
		return "this is not a connection string", form
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return "this is not a connection string of PostgreSQL", form
	}
	return "", ""
}

func badSchema(s string) (reason, remedy string) {
	if len(s) <= 63 && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || strings.ContainsRune("\"'\\{}", r) }) {
		return "", ""
	}
	return "this cannot be the name of a schema", "use at most 63 bytes without quotes, backslashes and braces"
}

func badLowerPrefix(s string) (reason, remedy string) {
	if s != strings.ToLower(s) {
		return "PostgreSQL converts unquoted names to lower case and would not find these tables", "use lower-case letters"
	}
	return badPrefix(s)
}

func redisShape() shape.Object[Redis] {
	return shape.Object[Redis]{Fields: []shape.Field[Redis]{
		shape.Key(shape.Meta{Name: "addresses", Required: true, Doc: "The server as `host:port`, or nodes of a cluster, or the Sentinels. Semel asks the server whether it is a cluster."},
			addressesShape{}, func(r *Redis) *[]string { return &r.Addresses }),
		shape.Key(shape.Meta{Name: "sentinel", Doc: "The name of the master at the Sentinels."},
			shape.Word{What: "the name of a master"}, func(r *Redis) *string { return &r.Sentinel }),
		shape.Key(shape.Meta{Name: "user", Doc: "The user, if the server has several. For its permissions see [leased keys](leased-keys.md#what-redis-is-worth)."},
			shape.Word{What: "the name of a user"}, func(r *Redis) *string { return &r.User }),
		shape.Key(shape.Meta{Name: "password", Doc: "The password, as an environment variable `${NAME}`."}, secret{}, func(r *Redis) *string { return &r.Password }),
		shape.Key(shape.Meta{Name: "tls", Def: "false", Doc: "Encrypts every connection: `true` with the certificate authorities of the system, or a mapping."},
			encryption{tlsShape()}, func(r *Redis) **TLS { return &r.TLS }),
		shape.Key(shape.Meta{Name: "prefix", Def: "semel", Doc: "The prefix of key names."},
			shape.Word{What: "a prefix", Check: badKeyPart}, func(r *Redis) *string { return &r.Prefix }),
		shape.Key(shape.Meta{Name: "hash_tag", Doc: "A text in braces after the prefix, which places all keys on one node of a cluster. Without it they are spread over all nodes."},
			shape.Word{What: "a text", Check: badKeyPart}, func(r *Redis) *string { return &r.HashTag }),
		shape.Key(shape.Meta{Name: "persistence", Doc: "The durability of a server that does not report its settings, such as a managed service. `durable`: acknowledged writes are kept; `seconds`: except the last seconds before a crash or failover; `volatile`: keys may be lost and calls made twice. Needs `because`. Without this key, a server that is volatile or of unknown durability is refused."},
			shape.Choice[keystore.Durability]{Options: []shape.Option[keystore.Durability]{
				{Word: "durable", Value: keystore.Durable}, {Word: "seconds", Value: keystore.DurableExceptSeconds}, {Word: "volatile", Value: keystore.Volatile}}},
			func(r *Redis) *keystore.Durability { return &r.Persistence }),
		shape.Key(shape.Meta{Name: "because", Doc: "The reason for `persistence`. It is logged at the start."},
			shape.Word{What: "a sentence"}, func(r *Redis) *string { return &r.Because }),
	}}
}

func badKeyPart(s string) (reason, remedy string) {
	if strings.ContainsAny(s, "{} \t\n") || len(s) > 100 {
		return "names of keys cannot contain this", "use at most 100 bytes without braces and blanks; the braces of a hash tag are put around it"
	}
	return "", ""
}

// addressesShape describes a list of addresses.
type addressesShape struct{ shape.Leaf }

func (addressesShape) list() shape.List[string] {
	return shape.List[string]{Item: shape.Word{What: "an address as host:port", Check: badAddress}, Single: true}
}

func (s addressesShape) Read(d *shape.Decoder, p shape.Place) ([]string, bool) {
	return s.list().Read(d, p)
}

func (s addressesShape) Words() string { return s.list().Words() }

func (s addressesShape) Schema() shape.Schema { return s.list().Schema() }

func badAddress(text string) (reason, remedy string) {
	if reason, _ := badBrokers(text); reason != "" || strings.Contains(text, ",") {
		return "this is not an address", `write "host:port", as "127.0.0.1:6379", or a list of them`
	}
	return "", ""
}

// Encryption configures the encryption of stored messages. The keys are secrets: never print the keys.
type Encryption struct {
	// Key encrypts messages. Key and PreviousKeys decrypt messages. Each key has encryption.KeySize bytes.
	Key          []byte
	PreviousKeys [][]byte
	// RequiredSince is the time from which rows in plain text are rejected; zero if rows in plain text are
	// always accepted.
	RequiredSince time.Time
}

func encryptionShape() shape.Object[Encryption] {
	return shape.Object[Encryption]{Fields: []shape.Field[Encryption]{
		shape.Key(shape.Meta{Name: "key", Required: true, Doc: "The key: 32 random bytes in base64, as an environment variable such as `${SHOP_KEY}`. Create it with `openssl rand -base64 32`. All processes of a store need the same key. Back it up: without it the data cannot be read."},
			encryptionKey{secret{noFile: true}}, func(e *Encryption) *[]byte { return &e.Key }),
		shape.Key(shape.Meta{Name: "previous_keys", Doc: "Earlier keys, for reading older rows. See [erasing and encrypting](encryption.md#change-the-key)."},
			shape.List[[]byte]{Item: encryptionKey{secret{noFile: true}}, Single: true}, func(e *Encryption) *[][]byte { return &e.PreviousKeys }),
		shape.Key(shape.Meta{Name: "required_since", Doc: "From this time on, plain-text rows are parked as `unreadable`, even if they were received earlier. Without this key they are processed. Processes that start later also [encrypt fingerprints](encryption.md#keyed-fingerprints). See [reject plain text](encryption.md#reject-plain-text)."},
			instantOrDate{}, func(e *Encryption) *time.Time { return &e.RequiredSince }),
	}}
}

// encryptionKey describes a secret that has the size of an encryption key.
type encryptionKey struct{ secret }

func (k encryptionKey) Read(d *shape.Decoder, p shape.Place) ([]byte, bool) {
	text, ok := k.secret.Read(d, p)
	if !ok {
		return nil, false
	}
	const remedy = "set the environment variable to the output of: openssl rand -base64 32"
	bytes, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		d.Fault(p, "the key is not valid base64", remedy)
		return nil, false
	case len(bytes) != encrypt.KeySize:
		d.Fault(p, fmt.Sprintf("the key has %d bytes, but must have %d", len(bytes), encrypt.KeySize), remedy)
		return nil, false
	}
	return bytes, true
}

// Postgres is a store in a PostgreSQL database.
type Postgres struct {
	// URL is the connection string, including secrets: never print URL. If URL is empty, the file URLFile
	// contains the connection string.
	URL, URLFile string
	// PasswordFile is the file with the password for URL and Listen; empty if the connection strings contain
	// the password.
	PasswordFile string
	// Schema is the schema of Semel's tables, Prefix the prefix of their names.
	Schema, Prefix string
	// Listen is the connection string of the connection that receives notifications, including secrets. If
	// Listen is empty, consumers poll the inbox.
	Listen string
}

// BadURL returns why a connection string is invalid, or "" for a valid one. The reason does not quote the
// connection string, which may contain a password.
func BadURL(text string) (reason string) {
	reason, _ = badURL(text)
	return reason
}

// Redis is a store of leased keys, without Semel's tables.
type Redis struct {
	// Addresses are the addresses of the server, of cluster nodes, or of Sentinels, as host:port.
	Addresses []string
	// Sentinel is the name of the master that the Sentinels monitor; empty without Sentinels.
	Sentinel string
	// User and Password authenticate at the server. Semel connects to Sentinels without user and password.
	User, Password string
	// TLS configures encryption; nil without encryption.
	TLS *TLS
	// Prefix and HashTag have the same meaning as in redisstore.Options.
	Prefix, HashTag string
	// Persistence is the durability that the user declares for a server that cannot report its durability; 0
	// if the user declares none. Because is the user's reason.
	Persistence keystore.Durability
	Because     string
}

// AllowVolatile returns the user's reason why the server may lose keys, or "" if the server must not lose
// keys.
func (r *Redis) AllowVolatile() string {
	if r.Persistence == keystore.Volatile {
		return r.Because
	}
	return ""
}

// Databases returns the stores that have Semel's tables.
func (p *Policy) Databases() (all []*Store) {
	for _, s := range p.Stores {
		if s.Redis == nil {
			all = append(all, s)
		}
	}
	return all
}

// HasTables reports whether the named store has Semel's tables. With an empty name, HasTables reports
// whether any store has Semel's tables.
func (p *Policy) HasTables(store string) bool {
	for _, s := range p.Databases() {
		if store == "" || s.Name == store {
			return true
		}
	}
	return false
}
