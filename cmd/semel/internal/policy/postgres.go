package policy

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
