package policy

import (
	"os"
	"strings"
	"testing"
)

func TestAPasswordInTheURLOfADatabaseIsRefused(t *testing.T) {
	for url, want := range map[string]bool{
		"postgres://shop:hunter2@db/shop":                                true,
		"postgres://shop@db/shop?sslmode=require&password=hunter2":       true,
		"${DATABASE_URL:-postgres://shop:hunter2@db/shop}":               true,
		"postgres://shop:${SECRET:-hunter2}@db/shop":                     true,
		"postgres://shop:${SECRET}@db/shop":                              false,
		"postgres://shop@db/shop?password=${SECRET}":                     false,
		"postgres://shop@db:5432/shop?options=-c%20a:b@c":                false,
		"${DATABASE_URL:-postgres://postgres@127.0.0.1:5432/postgres}":   false,
		"postgres://postgres@[::1]:5432/postgres?sslmode=disable":        false,
		"${DATABASE_URL:-postgres://${USER}:${SECRET}@db:5432/postgres}": false,
	} {
		if got := hasPassword(url); got != want {
			t.Errorf("%s: refused %v, want %v", url, got, want)
		}
	}
	for _, key := range []string{"url", "listen"} {
		t.Run("law_15_"+key+"_with_a_password", func(t *testing.T) {
			text := strings.Replace(`version: 1
stores: {shop: {postgres: {url: "postgres://db/shop", KEY: "postgres://shop:hunter2@db/shop"}}}
`, `url: "postgres://db/shop", KEY`, map[string]string{"url": "url", "listen": `url: "postgres://db/shop", listen`}[key], 1)
			_, faults := Parse("semel.yaml", []byte(text), os.LookupEnv)
			var all []string
			for _, f := range faults {
				all = append(all, f.String())
			}
			if said := strings.Join(all, "\n"); !strings.Contains(said, "postgres."+key+": the policy contains a password in plain text") || strings.Contains(said, "hunter2") {
				t.Errorf("it is said: %s", said)
			}
		})
	}
}
