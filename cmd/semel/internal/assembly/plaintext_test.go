package assembly

import "testing"

func TestUnencryptedRemoteServersAreFound(t *testing.T) {
	for url, want := range map[string]string{
		"postgres://u@db.example/x":                     "db.example",
		"postgres://u@db.example/x?sslmode=disable":     "db.example",
		"postgres://u@db.example/x?sslmode=require":     "",
		"postgres://u@localhost/x":                      "",
		"postgres://u@127.0.0.1/x?sslmode=disable":      "",
		"postgres://u@/x?host=/run/postgresql":          "",
		"postgres://u@db.example/x?sslmode=verify-full": "",
	} {
		config, err := poolConfig(url, 1)
		if err != nil {
			t.Fatal(err)
		}
		if got := plainHost(&config.ConnConfig.Config); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}
