package assembly

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/semel-go/semel/cmd/semel/internal/policy"
)

func TestAPasswordOfPostgreSQLInAFile(t *testing.T) {
	file := func(name, text string) string {
		at := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return at
	}
	password := file("password", "hunter2 @:/\n")
	t.Run("is_taken_without_its_line_break_and_read_again_with_each_connection", func(t *testing.T) {
		p := &policy.Postgres{URL: "postgres://shop@db:5432/shop?sslmode=disable", Listen: "postgres://shop@server/shop", PasswordFile: password}
		to, listen, err := connectionStrings(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{to, listen} {
			if c, err := pgx.ParseConfig(text); err != nil || c.Password != "hunter2 @:/" || c.User != "shop" || c.Database != "shop" {
				t.Errorf("%+v, %v", c, err)
			}
		}
		config, err := poolConfig(to, 2)
		if err != nil {
			t.Fatal(err)
		}
		rereadPassword(config, secret{file: password})
		if err := os.WriteFile(password, []byte("renewed"), 0o600); err != nil {
			t.Fatal(err)
		}
		c := config.ConnConfig.Copy()
		if err := config.BeforeConnect(t.Context(), c); err != nil || c.Password != "renewed" {
			t.Errorf("%v", err)
		}
	})
	t.Run("a_whole_connection_string_in_a_file", func(t *testing.T) {
		to, _, err := connectionStrings(&policy.Postgres{URLFile: file("url", "postgres://shop:hunter2@db/shop\r\n")})
		if err != nil || to != "postgres://shop:hunter2@db/shop" {
			t.Errorf("%q, %v", to, err)
		}
	})
	t.Run("law_15_what_is_wrong_is_said_without_the_secret", func(t *testing.T) {
		for says, p := range map[string]*policy.Postgres{
			"postgres.password_file: open /none":            {URL: "postgres://db/shop", PasswordFile: "/none"},
			"does not hold exactly one line":                {URL: "postgres://db/shop", PasswordFile: file("empty", "\n")},
			"postgres.url_file: open /none":                 {URLFile: "/none"},
			"this is not a connection string of PostgreSQL": {URLFile: file("url", "mysql://shop:hunter2@db/shop")},
			"both the connection string and":                {URL: "postgres://shop:hunter2@db/shop", PasswordFile: password},
			"postgres.password_file have a password":        {URL: "postgres://shop@db/shop?password=hunter2", PasswordFile: password},
		} {
			if _, _, err := connectionStrings(p); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%s: %v", says, err)
			}
		}
	})
}
