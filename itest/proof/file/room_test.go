//go:build unix

package file

import (
	"flag"
	"io"
	"strings"
	"testing"
)

func TestADatabaseThatIsNotThereIsRefused(t *testing.T) {
	for name, refused := range map[string]bool{"sqlite": false, "postgres": false, "postgresql": true, "": true} {
		r, flags := &Room{}, flag.NewFlagSet("proof", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		r.Flags(flags)
		err := flags.Parse([]string{"-into", name})
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "sqlite and postgres") || !refused && r.into != name {
			t.Errorf("%q: %v, into %q", name, err, r.into)
		}
	}
}
