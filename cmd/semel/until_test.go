package main

import (
	"errors"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// reactionTimeout is the timeout for reactions of other processes. Only a failing test waits that long.
// A timeout of one minute is too short when many tests run at the same time.
const reactionTimeout = 5 * time.Minute

// eventually waits until ok returns true. The function ok may start a process, so eventually pauses between
// calls.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline, tick := time.After(reactionTimeout), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s, in %v", what, reactionTimeout)
		}
	}
}

// The script command "until CODE COMMAND..." repeats a command until the command exits with CODE.
func waitUntil(ts *testscript.TestScript, _ bool, args []string) {
	deadline, tick := time.After(reactionTimeout), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		code := 0
		err := ts.Exec(args[1], args[2:]...)
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit):
			code = exit.ExitCode()
		case err != nil:
			ts.Fatalf("%v", err)
		}
		if strconv.Itoa(code) == args[0] {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("exit code %d, not %s, for %v", code, args[0], reactionTimeout)
		}
	}
}

// The script command "says PATTERN COMMAND..." repeats a command until the command prints a line that matches
// PATTERN.
func waitForOutput(ts *testscript.TestScript, _ bool, args []string) {
	deadline, tick := time.After(reactionTimeout), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	for {
		if err := ts.Exec(args[1], args[2:]...); err == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("it has not said %s for %v", args[0], reactionTimeout)
		}
	}
}

// The script command "scrape LINE..." reads /metrics on $PORT until the response contains all lines.
func scrape(ts *testscript.TestScript, _ bool, lines []string) {
	deadline, tick := time.After(reactionTimeout), time.NewTicker(50*time.Millisecond)
	defer tick.Stop()
	for {
		response, err := http.Get("http://127.0.0.1:" + ts.Getenv("PORT") + "/metrics")
		ts.Check(err)
		text, err := io.ReadAll(response.Body)
		ts.Check(errors.Join(err, response.Body.Close()))
		missing := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.Contains(string(text), "\n"+line+"\n") })
		if len(missing) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%s\nhas no %q", text, missing)
		}
	}
}
