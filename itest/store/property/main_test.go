package property

import (
	"flag"
	"os"
	"testing"
)

// checks is how many histories are drawn unless -rapid.checks is set: with the race detector each takes ten times as
// long.
const checks = "30"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", checks); err != nil {
		panic(err)
	}
	flag.Parse() // values on the command line take precedence
	os.Exit(m.Run())
}
