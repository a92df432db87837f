package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/semel-go/semel/cmd/semel/internal/cli/command"
)

// A Go program has no policy, so its operators give the values of a policy as flags.
func TestPositionsWithoutAPolicy(t *testing.T) {
	folder := t.TempDir()
	run := func(words ...string) (int, string) {
		var out, err bytes.Buffer
		code := Main(t.Context(), append([]string{"consumers", "positions"}, words...), command.Streams{Out: &out, Err: &err, Env: func(string) (string, bool) { return "", false }})
		return code, out.String() + err.String()
	}
	whole := []string{"--store", "sqlite:" + folder + "/shop.db", "billing", "--brokers", "127.0.0.1:1", "--topics", "payments"}
	for name, c := range map[string]struct {
		words []string
		code  int
		says  string
	}{
		"the_consumer_is_missing":    {whole[:2], command.ExitUsage, "--store needs the name of the consumer, --brokers and --topics"},
		"the_topics_are_missing":     {whole[:5], command.ExitUsage, "--store needs the name of the consumer, --brokers and --topics"},
		"brokers_belong_to_a_store":  {whole[2:], command.ExitUsage, "need --store"},
		"a_name_is_no_database":      {append([]string{"--store", "shop"}, whole[2:]...), command.ExitUsage, "need --store with a database"},
		"the_database_is_asked_then": {whole, command.ExitFailed, "shop.db"},
	} {
		t.Run("case_13_"+name, func(t *testing.T) {
			if code, said := run(append([]string{"plan"}, c.words...)...); code != c.code || !strings.Contains(said, c.says) {
				t.Errorf("exit code %d: %s", code, said)
			}
		})
	}
}
