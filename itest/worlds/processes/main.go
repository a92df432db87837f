//go:build unix

package processes

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// WithBinary is for TestMain. WithBinary builds the binary once, puts the path of the binary into an environment
// variable and runs the tests.
func WithBinary(m *testing.M, variable string) (code int) {
	dir, err := os.MkdirTemp("", "semel-binary")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary, err := Build(context.Background(), dir)
	if err == nil {
		err = os.Setenv(variable, binary)
	}
	if err != nil {
		panic(err)
	}
	return m.Run()
}

// OwnProgram is for TestMain of a package that starts its own test program as another process. If the first argument of
// the program is the parameter argument, OwnProgram calls the function live with the second argument and runs no tests.
func OwnProgram(m *testing.M, argument string, live func(order string) error) {
	if len(os.Args) < 3 || os.Args[1] != argument {
		os.Exit(m.Run())
	}
	if err := live(os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
