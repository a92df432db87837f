// Package children starts the program of a test again as a child process, which may kill
// itself, be killed or be frozen.
package children

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// variable is the environment variable with the order for a child.
const variable = "SEMEL_TEST_ORDER"

// Main is for TestMain: it runs the tests or, in a child, the ordered function.
func Main[Order any](m *testing.M, live func(Order) error) {
	text, child := os.LookupEnv(variable)
	if !child {
		os.Exit(m.Run())
	}
	var o Order
	err := json.Unmarshal([]byte(text), &o)
	if err == nil {
		err = live(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Command returns a command for a child with this order. The child is killed when ctx ends.
func Command[Order any](ctx context.Context, t testing.TB, o Order) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), variable+"="+string(text))
	return c
}
