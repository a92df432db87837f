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

// Where Semel's tables are when nobody says.
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
		shape.Key(shape.Meta{Name: "listen", Doc: "The connection string of an additional connection for notifications about due inbox rows. Without it, consumers poll every `inbox.poll`. It must connect to the server directly, not through a pooler. Processes that send notifications need it too: those that receive messages, and `semel inbox retry`."},
			connection{shape.Word{What: "a connection string, as postgres://user:${PASSWORD}@host:5432/database", Pattern: `^postgres(ql)?://\S+$`, Check: badURL}},
			func(p *Postgres) *string { return &p.Listen }),
	}}
}

// connection is a connection string, whose password is a variable of the environment.
type connection struct{ shape.Word }

func (c connection) Read(d *shape.Decoder, p shape.Place) (string, bool) {
	if hasPassword(p.Value().Value) {
		d.Fault(p, "a password stands in the policy", "write ${NAME} in its place, a variable of the environment, or take the whole connection string from one")
		return "", false
	}
	return c.Word.Read(d, p)
}

// passwords finds the passwords of connection strings, in front of the host and as a parameter.
var passwords = regexp.MustCompile(`://[^:@/\s]*:([^@/\s]*)@|[?&]password=([^&\s}]+}?)`)

// hasPassword reports whether a password stands in a text, and not a variable alone.
func hasPassword(text string) bool {
	for _, found := range passwords.FindAllStringSubmatch(text, -1) {
		password := found[1] + found[2]
		if password != "" && (!strings.Contains(password, "${") || strings.Contains(password, ":-")) {
			return true
		}
	}
	return false
}

// badURL says nothing of the text itself: it may hold a password.
func badURL(s string) (reason, remedy string) {
	const form = "write postgres://user:${PASSWORD}@host:5432/database; in a password, write @ : / ? # % as %40 %3A %2F %3F %23 %25"
	u, err := url.Parse(s)
	switch {
	case err != nil || strings.ContainsAny(s, " \t"):
		return "this is no connection string", form
	case u.Scheme != "postgres" && u.Scheme != "postgresql":
		return "this is no connection string of PostgreSQL", form
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
		return "PostgreSQL would not find these names again", "use lower-case letters"
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
		return "this cannot stand in the names of keys", "use at most 100 bytes without braces and blanks; the braces of a hash tag are put around it"
	}
	return "", ""
}

// addressesShape is a list of texts, each of one address.
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
		return "this is no address", `write "host:port", as "127.0.0.1:6379", or a list of them`
	}
	return "", ""
}

// Encryption says how a store encrypts what it keeps of messages. Its keys are secrets: never
// print them.
type Encryption struct {
	// Key encrypts; Key and PreviousKeys decrypt; each has encryption.KeySize bytes.
	Key          []byte
	PreviousKeys [][]byte
	// RequiredSince, if not zero, is from when on rows in plain text are refused.
	RequiredSince time.Time
}

func encryptionShape() shape.Object[Encryption] {
	return shape.Object[Encryption]{Fields: []shape.Field[Encryption]{
		shape.Key(shape.Meta{Name: "key", Required: true, Doc: "The key: 32 random bytes in base64, as an environment variable such as `${SHOP_KEY}`. Create it with `openssl rand -base64 32`. All processes of a store need the same key. Back it up: without it the data cannot be read."},
			encryptionKey{secret{noFile: true}}, func(e *Encryption) *[]byte { return &e.Key }),
		shape.Key(shape.Meta{Name: "previous_keys", Doc: "Earlier keys, for reading older rows. See [erasing and encrypting](encryption.md#change-the-key)."},
			shape.List[[]byte]{Item: encryptionKey{secret{noFile: true}}, Single: true}, func(e *Encryption) *[][]byte { return &e.PreviousKeys }),
		shape.Key(shape.Meta{Name: "required_since", Doc: "From this time on, plain-text rows are parked as `unreadable`, whatever their time of receipt. Without this key they are processed. Processes that start later also [encrypt fingerprints](encryption.md#keyed-fingerprints). See [refusing plain text](encryption.md#reject-plain-text)."},
			instantOrDate{}, func(e *Encryption) *time.Time { return &e.RequiredSince }),
	}}
}

// encryptionKey is a secret of so many bytes.
type encryptionKey struct{ secret }

func (k encryptionKey) Read(d *shape.Decoder, p shape.Place) ([]byte, bool) {
	text, ok := k.secret.Read(d, p)
	if !ok {
		return nil, false
	}
	const remedy = "write into the environment what this prints: openssl rand -base64 32"
	bytes, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		d.Fault(p, "the key is no base64", remedy)
		return nil, false
	case len(bytes) != encrypt.KeySize:
		d.Fault(p, fmt.Sprintf("the key has %d bytes, and one has %d", len(bytes), encrypt.KeySize), remedy)
		return nil, false
	}
	return bytes, true
}

// Postgres is a store in a PostgreSQL database.
type Postgres struct {
	// URL is the connection string, with its secrets: never print it. Empty: URLFile names
	// the file that holds it.
	URL, URLFile string
	// PasswordFile, if not empty, holds the password, for URL and Listen.
	PasswordFile string
	// Schema is where Semel's tables are; Prefix begins their names.
	Schema, Prefix string
	// Listen is the connection string of the connection that hears notifications,
	// with its secrets; empty: the inbox is asked.
	Listen string
}

// BadURL says why a text, which may hold a password and is not shown, is no connection
// string; empty if it is one.
func BadURL(text string) (reason string) {
	reason, _ = badURL(text)
	return reason
}

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
	Persistence keystore.Durability
	Because     string
}

// AllowVolatile says why it is bearable that the server forgets keys; empty if it is not.
func (r *Redis) AllowVolatile() string {
	if r.Persistence == keystore.Volatile {
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
