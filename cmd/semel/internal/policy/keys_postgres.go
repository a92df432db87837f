package policy

import (
	"net/url"
	"regexp"
	"strings"
)

// The table of a PostgreSQL store.

// Where Semel's tables are when nobody says.
const (
	usualSchema = "public"
	usualPrefix = "semel_"
)

func postgresShape() object[Postgres] {
	return object[Postgres]{oneOf: []string{"url", "url_file"}, unsaid: "there is no connection string", fields: []field[Postgres]{
		key(meta{name: "url", doc: "The connection string, as `postgres://user:${PASSWORD}@host:5432/database?sslmode=verify-full`. A password in it is a variable of the environment, and is never shown. Without `pool_max_conns` in it, a process opens at most the workers of the store's consumers and two more connections."},
			connection{word{what: "a connection string, as postgres://user:${PASSWORD}@host:5432/database", pattern: `^postgres(ql)?://\S+$`, check: badURL}},
			func(p *Postgres) *string { return &p.URL }),
		key(meta{name: "url_file", doc: "In place of `url`: a file with the connection string on its only line, which may hold the password. It is read at the start."},
			path{word: word{what: "a path"}}, func(p *Postgres) *string { return &p.URLFile }),
		key(meta{name: "password_file", doc: "A file with the password on its only line, for `url` and `listen`, which have none then. It is read at the start, and for `url` again with each connection, so that it can be renewed."},
			path{word: word{what: "a path"}}, func(p *Postgres) *string { return &p.PasswordFile }),
		key(meta{name: "schema", def: usualSchema, doc: "The schema of Semel's tables. Every statement of Semel's names it; yours follow the search_path."},
			word{what: "the name of a schema", pattern: `^[^"'\\{}\x00-\x1f]{1,63}$`, check: badSchema}, func(p *Postgres) *string { return &p.Schema }),
		key(meta{name: "prefix", def: usualPrefix, doc: "What the names of Semel's tables begin with."},
			word{what: "a table prefix in lower case", pattern: `^[a-z_][a-z0-9_]{0,31}$`, check: badLowerPrefix}, func(p *Postgres) *string { return &p.Prefix }),
		key(meta{name: "listen", doc: "The connection string of one more connection, over which the process hears at once that something in the inbox of its consumers is due; without it they ask, once in `inbox.poll`. It must lead to the server itself, also where `url` leads to a pooler. Whoever shall be heard needs it, too: processes that receive, and `semel inbox retry`."},
			connection{word{what: "a connection string, as postgres://user:${PASSWORD}@host:5432/database", pattern: `^postgres(ql)?://\S+$`, check: badURL}},
			func(p *Postgres) *string { return &p.Listen }),
	}}
}

// connection is a connection string, whose password is a variable of the environment.
type connection struct{ word }

func (c connection) read(d *decoder, p place) (string, bool) {
	if hasPassword(p.value().Value) {
		d.fault(p, "a password stands in the policy", "write ${NAME} in its place, a variable of the environment, or take the whole connection string from one")
		return "", false
	}
	return c.word.read(d, p)
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
