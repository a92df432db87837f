package assembly

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

// connectionStrings are url and listen of a store, with what stands in files. No error shows
// what a file holds.
func connectionStrings(p *policy.Postgres) (to, listen string, err error) {
	to, listen = p.URL, p.Listen
	if p.URLFile != "" {
		if to, err = (secret{file: p.URLFile}).read(); err != nil {
			return "", "", fmt.Errorf("postgres.url_file: %w; name a readable file with the connection string on its only line", err)
		}
		if reason := policy.BadURL(to); reason != "" {
			return "", "", fmt.Errorf("postgres.url_file: %s: %s; write postgres://user:password@host:5432/database into it", p.URLFile, reason)
		}
	}
	if p.PasswordFile == "" {
		return to, listen, nil
	}
	password, err := secret{file: p.PasswordFile}.read()
	if err != nil {
		return "", "", fmt.Errorf("postgres.password_file: %w; name a readable file with the password on its only line", err)
	}
	if to, err = withPassword(to, password); err == nil && listen != "" {
		listen, err = withPassword(listen, password)
	}
	return to, listen, err
}

// withPassword is a connection string with a password, which must not have one.
func withPassword(text, password string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", errors.New("the connection string cannot be read, so that the password of postgres.password_file has no place in it")
	}
	_, has := u.User.Password()
	if has || u.Query().Has("password") {
		return "", errors.New("a password stands in the connection string and in postgres.password_file; remove one of them")
	}
	u.User = url.UserPassword(u.User.Username(), password)
	return u.String(), nil
}

// rereadPassword has each new connection read the password again. One that cannot be read is
// an error of that connection.
func rereadPassword(config *pgxpool.Config, password secret) {
	before := config.BeforeConnect
	config.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error {
		text, err := password.read()
		if err != nil {
			return fmt.Errorf("postgres.password_file: %w", err)
		}
		c.Password = text
		if before == nil {
			return nil
		}
		return before(ctx, c)
	}
}
