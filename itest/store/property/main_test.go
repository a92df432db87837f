package property

import (
	"flag"
	"os"
	"testing"
)

// checks is how many histories are drawn where nobody says otherwise with -rapid.checks:
// with the race detector each takes ten times as long.
const checks = "30"

func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", checks); err != nil {
		panic(err)
	}
	flag.Parse() // what is given on the command line stands
	os.Exit(m.Run())
}
