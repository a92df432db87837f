package property

import (
	"flag"
	"os"
	"testing"
)

// The number of histories, unless -rapid.checks is set. The number is small because a history takes ten times as long
// with the race detector.
const checks = "30"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", checks); err != nil {
		panic(err)
	}
	flag.Parse() // values on the command line take precedence
	os.Exit(m.Run())
}
