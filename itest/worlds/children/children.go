// Package children starts the program of a test again as a child process. The child may kill itself, and the
// test may kill or freeze it.
package children

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// The environment variable with the order for a child, as JSON.
const variable = "SEMEL_TEST_ORDER"

// Main is for TestMain. In the test's process, Main runs the tests. In a child process, Main calls the function live
// with the child's order.
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

// Command returns a command that starts a child with the order o. The child is killed when ctx ends.
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
